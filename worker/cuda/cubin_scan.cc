// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/cubin_scan.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "worker/cuda/ptx_scan.h"

namespace mtmc::worker {
namespace {

// More than NVRTC makes of the largest text; bounds the work on a forged file.
constexpr size_t kMaxSymbols = size_t{1} << 20;
constexpr size_t kMaxParameters = 4096;

// Attribute of `.nv.info.KERNEL` that describes one parameter.
constexpr uint8_t kParameterInfo = 0x17;
// Its values are preceded by their length.
constexpr uint8_t kSizedFormat = 4;

// A value at `offset`, if it lies within `bytes`.
template <typename T>
std::optional<T> ReadAt(std::string_view bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

struct Section {
  std::string name;
  uint32_t type = 0;
  uint64_t flags = 0;
  uint64_t bytes = 0;
  uint32_t link = 0;
  // Empty where the file holds none, as for zeroed memory.
  std::string_view data;
};

// From Blackwell on, `.nv.merc.X` repeats section `.X` in another encoding.
std::string_view PlainName(const Section& section) {
  std::string_view name = section.name;
  constexpr std::string_view kRepeated = ".nv.merc";
  if (name.starts_with(kRepeated)) name.remove_prefix(kRepeated.size());
  return name;
}

bool IsModuleMemory(const Section& section) { return PlainName(section).starts_with(".nv.global"); }

// Memory of a block or a thread, which ends with the launch.
bool IsLaunchMemory(const Section& section) {
  const std::string_view name = PlainName(section);
  return name.starts_with(".nv.shared.") || name.starts_with(".nv.local.");
}

// The zero-terminated text at `offset`.
std::optional<std::string> TextAt(std::string_view table, uint64_t offset) {
  if (offset >= table.size()) return std::nullopt;
  const size_t end = table.find('\0', offset);
  if (end == std::string_view::npos) return std::nullopt;
  return std::string(table.substr(offset, end - offset));
}

class CubinReader {
 public:
  explicit CubinReader(std::string_view cubin) : cubin_(cubin) {}

  std::optional<CubinContents> Read() {
    if (!ReadSections()) return std::nullopt;
    for (const Section& section : sections_) {
      const bool is_writable = (section.flags & SHF_WRITE) != 0 && (section.flags & SHF_ALLOC) != 0;
      if (is_writable && section.bytes > 0 && !IsModuleMemory(section) &&
          !IsLaunchMemory(section)) {
        contents_.writable_sections.push_back(section.name);
      }
      if (section.type == SHT_SYMTAB && !ReadSymbols(section)) return std::nullopt;
    }
    if (HasUnnamedModuleMemory()) contents_.writable_sections.emplace_back(".nv.global");
    for (CubinKernel& kernel : contents_.kernels) {
      if (!ReadParameters(kernel)) return std::nullopt;
    }
    return std::move(contents_);
  }

 private:
  bool ReadSections() {
    const auto header = ReadAt<Elf64_Ehdr>(cubin_, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
        header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shnum == 0 ||
        header->e_shstrndx >= header->e_shnum) {
      return false;
    }
    std::vector<Elf64_Shdr> headers;
    for (uint64_t i = 0; i < header->e_shnum; ++i) {
      const auto section = ReadAt<Elf64_Shdr>(cubin_, header->e_shoff + i * sizeof(Elf64_Shdr));
      if (!section) return false;
      headers.push_back(*section);
    }
    const std::optional<std::string_view> names = DataOf(headers[header->e_shstrndx]);
    if (!names) return false;
    for (const Elf64_Shdr& section : headers) {
      const std::optional<std::string> name = TextAt(*names, section.sh_name);
      const std::optional<std::string_view> data = DataOf(section);
      if (!name || !data) return false;
      sections_.push_back({.name = *name,
                           .type = section.sh_type,
                           .flags = section.sh_flags,
                           .bytes = section.sh_size,
                           .link = section.sh_link,
                           .data = *data});
    }
    return true;
  }

  std::optional<std::string_view> DataOf(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL) return std::string_view();
    if (section.sh_offset > cubin_.size() || section.sh_size > cubin_.size() - section.sh_offset) {
      return std::nullopt;
    }
    return cubin_.substr(section.sh_offset, section.sh_size);
  }

  bool ReadSymbols(const Section& table) {
    if (table.link >= sections_.size() || table.data.size() / sizeof(Elf64_Sym) > kMaxSymbols) {
      return false;
    }
    for (uint64_t at = 0; at < table.data.size(); at += sizeof(Elf64_Sym)) {
      const auto symbol = ReadAt<Elf64_Sym>(table.data, at);
      if (!symbol) return false;
      const std::optional<std::string> name = TextAt(sections_[table.link].data, symbol->st_name);
      if (!name || !AddSymbol(*symbol, *name)) return false;
    }
    return true;
  }

  bool AddSymbol(const Elf64_Sym& symbol, const std::string& name) {
    const int type = ELF64_ST_TYPE(symbol.st_info);
    // NVRTC's own mark of the start of reserved shared memory.
    if (name.empty() || absl::StartsWith(name, ".nv.reservedSmem.")) return true;
    if (symbol.st_shndx == SHN_UNDEF) {
      contents_.undefined.push_back(name);
      return true;
    }
    if (symbol.st_shndx >= SHN_LORESERVE) return type == STT_FILE || symbol.st_shndx == SHN_ABS;
    if (symbol.st_shndx >= sections_.size()) return false;
    const Section& section = sections_[symbol.st_shndx];
    if (type == STT_OBJECT && IsModuleMemory(section)) {
      contents_.variables.push_back(
          {.name = name,
           .bytes = static_cast<int64_t>(std::min<uint64_t>(symbol.st_size, section.bytes))});
    }
    if (type == STT_FUNC && section.name == absl::StrCat(".text.", name)) {
      contents_.kernels.push_back({.name = name, .parameter_bytes = {}});
    }
    return true;
  }

  // Whether module memory is larger than its variables with their alignment.
  bool HasUnnamedModuleMemory() const {
    constexpr uint64_t kAlignment = 16;
    uint64_t named = 0;
    for (const CubinVariable& variable : contents_.variables) {
      named += static_cast<uint64_t>(variable.bytes) + kAlignment;
    }
    return std::any_of(sections_.begin(), sections_.end(), [&](const Section& section) {
      return IsModuleMemory(section) && section.bytes > named;
    });
  }

  bool ReadParameters(CubinKernel& kernel) const {
    const auto info = std::find_if(sections_.begin(), sections_.end(), [&](const Section& section) {
      return section.name == absl::StrCat(".nv.info.", kernel.name);
    });
    if (info == sections_.end()) return true;

    struct Entry {
      uint8_t format;
      uint8_t attribute;
      uint16_t value;
    };

    for (uint64_t at = 0; at < info->data.size();) {
      const auto entry = ReadAt<Entry>(info->data, at);
      if (!entry) return false;
      at += sizeof(Entry);
      if (entry->format != kSizedFormat) continue;
      if (entry->attribute == kParameterInfo && !ReadParameter(info->data, at, kernel)) {
        return false;
      }
      at += entry->value;
    }
    return true;
  }

  static bool ReadParameter(std::string_view data, uint64_t at, CubinKernel& kernel) {
    struct Parameter {
      uint32_t index;
      uint16_t ordinal;
      uint16_t offset;
      // Size in the upper 14 bits.
      uint32_t layout;
    };

    const auto parameter = ReadAt<Parameter>(data, at);
    if (!parameter || parameter->ordinal >= kMaxParameters) return false;
    if (kernel.parameter_bytes.size() <= parameter->ordinal) {
      kernel.parameter_bytes.resize(parameter->ordinal + size_t{1});
    }
    kernel.parameter_bytes[parameter->ordinal] = parameter->layout >> 18;
    return true;
  }

  const std::string_view cubin_;
  std::vector<Section> sections_;
  CubinContents contents_;
};

Failure Refuse(std::string message) {
  return {.kind = Failure::Kind::kCheck, .message = std::move(message)};
}

std::string AdviceFor(const std::string& function) {
  if (function == "vprintf") return "remove printf";
  if (function == "__assertfail") return "use assert, which is off";
  if (function == "malloc" || function == "free") return "declare scratch as a `buffer`";
  if (absl::StartsWith(function, "cuda")) return "add a `launch` to the plan";
  return "define it in the source";
}

MaybeFailure CheckParameters(const CubinContents& contents,
                             const kernel::KernelSignature& declared) {
  for (const CubinKernel& compiled : contents.kernels) {
    if (compiled.name != declared.name) continue;
    bool is_same = compiled.parameter_bytes.size() == declared.parameters.size();
    for (size_t i = 0; is_same && i < declared.parameters.size(); ++i) {
      const kernel::KernelParameter& parameter = declared.parameters[i];
      const auto scalar = kernel::FindScalarType(parameter.type);
      // A type of the source's own cannot be passed; the plan checker says so.
      if (!parameter.is_pointer && !scalar) continue;
      const int64_t bytes =
          parameter.is_pointer ? int64_t{sizeof(void*)} : int64_t{scalar->bytes} * scalar->lanes;
      is_same = compiled.parameter_bytes[i] == bytes;
    }
    if (!is_same) {
      return Refuse(absl::StrCat("kernel `", declared.name,
                                 "` compiles to other parameters than its declaration shows; write "
                                 "it without macros"));
    }
  }
  return std::nullopt;
}

// Tables, strings and the coefficients of the mathematical functions are variables
// that nothing writes.
MaybeFailure CheckVariables(const CubinContents& contents, std::string_view ptx) {
  if (contents.variables.empty()) return std::nullopt;
  const PtxVariables known = ScanPtx(ptx);
  for (const CubinVariable& variable : contents.variables) {
    const bool is_written = variable.name == known.written;
    if (!is_written && known.declared.contains(variable.name)) continue;
    return Refuse(
        absl::StrCat("`", variable.name, "` (", variable.bytes,
                     " bytes) outlives a launch, and kernels keep no state",
                     is_written ? absl::StrCat("; `", known.statement, "` may write it") : "",
                     "; declare a table __constant__, use a `buffer` for scratch"));
  }
  if (known.written.empty()) return std::nullopt;
  return Refuse(absl::StrCat("`", known.written,
                             "` outlives a launch, and kernels keep no state; `", known.statement,
                             "` may write it"));
}

}  // namespace

std::optional<CubinContents> ReadCubin(std::string_view cubin) { return CubinReader(cubin).Read(); }

MaybeFailure CheckCubin(std::string_view cubin, std::string_view ptx, std::string_view source) {
  const std::optional<CubinContents> contents = ReadCubin(cubin);
  if (!contents) return Refuse("the compiled program cannot be read");
  if (!contents->undefined.empty()) {
    const std::string& name = contents->undefined.front();
    return Refuse(absl::StrCat("the program calls `", name, "`, which is not in its source; ",
                               AdviceFor(name)));
  }
  if (MaybeFailure failure = CheckVariables(*contents, ptx)) return failure;
  if (!contents->writable_sections.empty()) {
    return Refuse(absl::StrCat("the compiled program has writable memory `",
                               contents->writable_sections.front(),
                               "` that outlives a launch, and kernels keep no state"));
  }
  const kernel::KernelScan scan = kernel::FindKernels(source, kernel::Dialect::kCuda);
  for (const kernel::KernelSignature& declared : scan.kernels) {
    if (MaybeFailure failure = CheckParameters(*contents, declared)) return failure;
  }
  return std::nullopt;
}

}  // namespace mtmc::worker
