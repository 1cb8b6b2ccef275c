// SPDX-License-Identifier: Apache-2.0

// A main for fuzz targets where libFuzzer is not in use: replays each corpus
// file given (folders are walked), then `--mutations=N` random mutations of
// them with a fixed seed, so that a failure repeats.

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// What runs at the moment.
const std::vector<std::uint8_t>* g_input = nullptr;

constexpr char kFailedInput[] = "failed-input";

// An input that ends the process stays in a file of the working folder, to be given again.
void KeepInput(int signal) {
  if (std::FILE* file = std::fopen(kFailedInput, "wb")) {
    std::fwrite(g_input->data(), 1, g_input->size(), file);
    std::fclose(file);
    std::fprintf(stderr, "\nthe input is in %s\n", kFailedInput);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void Run(std::string_view input) {
  // A heap copy of the exact size lets the address sanitizer see an overrun.
  const std::vector<std::uint8_t> bytes(input.begin(), input.end());
  g_input = &bytes;
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  g_input = nullptr;
}

// Flips, inserts, erases, repeats or splices a few bytes.
std::string Mutate(const std::vector<std::string>& corpus, std::mt19937_64& random) {
  const auto below = [&random](std::size_t limit) {
    return limit == 0 ? 0 : static_cast<std::size_t>(random() % limit);
  };
  std::string text = corpus[below(corpus.size())];
  const std::size_t edits = 1 + below(8);
  for (std::size_t i = 0; i < edits; ++i) {
    const std::size_t at = below(text.size());
    const std::size_t length = below(16);
    switch (below(5)) {
      case 0:
        if (!text.empty()) text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text.insert(at, 1, static_cast<char>(below(256)));
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(at, text.substr(at, length));
        break;
      default: {
        const std::string& other = corpus[below(corpus.size())];
        text.insert(at, other.substr(below(other.size()), 4 * length));
      }
    }
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGBUS}) {
    std::signal(signal, KeepInput);
  }
  constexpr std::string_view kMutationsFlag = "--mutations=";
  std::vector<std::string> corpus;
  int mutations = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.substr(0, kMutationsFlag.size()) == kMutationsFlag) {
      mutations = std::atoi(argv[i] + kMutationsFlag.size());
    } else if (std::filesystem::is_directory(argument)) {
      for (const auto& entry : std::filesystem::recursive_directory_iterator(argument)) {
        if (entry.is_regular_file()) corpus.push_back(ReadAll(entry.path()));
      }
    } else {
      corpus.push_back(ReadAll(argument));
    }
  }
  if (corpus.empty()) corpus.emplace_back();
  for (const std::string& input : corpus) Run(input);
  std::mt19937_64 random(20221103);
  for (int i = 0; i < mutations; ++i) Run(Mutate(corpus, random));
  std::printf("%zu corpus inputs, %d mutations\n", corpus.size(), mutations);
  return 0;
}
