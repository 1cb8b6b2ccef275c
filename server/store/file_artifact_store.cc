// SPDX-License-Identifier: Apache-2.0
#include "server/store/file_artifact_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/digest.h"
#include "common/base/id.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"

namespace mtmc::store {
namespace {

namespace fs = std::filesystem;

// In each process's own folder of what is not finished; held while it lives.
constexpr char kLock[] = "lock";

absl::Status DiskFull(const std::string& detail) {
  return rpc::MakeError(absl::StatusCode::kResourceExhausted, "DISK_FULL",
                        absl::StrCat("the artifact store is full: ", detail,
                                     "; free space in the data directory and try again"));
}

absl::Status IoError(int number, const std::string& what) {
  if (number == ENOSPC || number == EDQUOT || number == EFBIG) return DiskFull(what);
  return base::SystemError(number, what);
}

absl::Status CheckDigest(const v1::Digest& digest) {
  if (base::Digest{digest.sha256()}.is_valid() && digest.size_bytes() >= 0) {
    return absl::OkStatus();
  }
  return rpc::MakeError(absl::StatusCode::kInvalidArgument, "INVALID_DIGEST",
                        absl::StrCat("digest \"", digest.sha256(), "\" with ", digest.size_bytes(),
                                     " bytes is not 64 lower-case hexadecimal digits and a size"));
}

v1::Digest DigestOf(std::string_view bytes) {
  v1::Digest digest;
  digest.set_sha256(base::Sha256(bytes).sha256_hex);
  digest.set_size_bytes(static_cast<int64_t>(bytes.size()));
  return digest;
}

absl::Status SyncFolder(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return IoError(errno, absl::StrCat("cannot open folder ", path));
  const int result = fsync(fd);
  const int number = errno;
  close(fd);
  return result == 0 ? absl::OkStatus() : IoError(number, absl::StrCat("cannot sync ", path));
}

int64_t TotalSize(const std::string& path) {
  int64_t total = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    if (it->is_regular_file(error)) total += static_cast<int64_t>(it->file_size(error));
  }
  return total;
}

absl::StatusOr<base::UniqueFd> OpenLock(const std::string& path) {
  base::UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (fd.get() < 0) return IoError(errno, absl::StrCat("cannot open ", path));
  return fd;
}

// Below `folder`: what belongs to no process that lives.
void RemoveLeftovers(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto lock = OpenLock(entry.path() / kLock);
    // A file of an earlier version has no lock.
    if (lock.ok() && flock(lock->get(), LOCK_EX | LOCK_NB) != 0) continue;
    std::error_code ignored;
    fs::remove_all(entry.path(), ignored);
  }
}

}  // namespace

// Owns the temporary file until it is renamed.
class FileArtifactWriter final : public ArtifactWriter {
 public:
  FileArtifactWriter(FileArtifactStore& store, v1::Digest digest, std::string path, int fd)
      : store_(store), digest_(std::move(digest)), path_(std::move(path)), fd_(fd) {}

  ~FileArtifactWriter() override {
    if (fd_ >= 0) close(fd_);
    if (!is_finished_) unlink(path_.c_str());
    if (!is_finished_) store_.stored_bytes_ -= reserved_bytes_;
  }

  FileArtifactWriter(const FileArtifactWriter&) = delete;
  FileArtifactWriter& operator=(const FileArtifactWriter&) = delete;

  absl::Status Append(std::string_view bytes) override {
    const auto size = static_cast<int64_t>(bytes.size());
    // More than was promised cannot hash to the digest; refuse before it is stored.
    if (reserved_bytes_ + size > digest_.size_bytes()) return Mismatch();
    MTMC_RETURN_IF_ERROR(store_.Reserve(size));
    reserved_bytes_ += size;
    hash_.Append(bytes);
    while (!bytes.empty()) {
      const ssize_t written = write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return IoError(errno, absl::StrCat("cannot write ", path_));
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    MTMC_RETURN_IF_ERROR(Sync());
    MTMC_ASSIGN_OR_RETURN(const std::string folder, Publish());
    return SyncFolder(folder);
  }

  // Begins what Sync() waits for, where the system can.
  void StartSync() const { sync_file_range(fd_, 0, 0, SYNC_FILE_RANGE_WRITE); }

  // The first part of Finish: the bytes are right and on disk.
  absl::Status Sync() {
    const bool is_whole = reserved_bytes_ == digest_.size_bytes();
    if (!is_whole || hash_.Finish().sha256_hex != digest_.sha256()) return Mismatch();
    if (fsync(fd_) != 0) return IoError(errno, absl::StrCat("cannot sync ", path_));
    return absl::OkStatus();
  }

  // The second part: the blob is visible. Returns the folder that is to be synchronized.
  absl::StatusOr<std::string> Publish() {
    const std::string target = store_.BlobPath(digest_);
    const std::string folder = fs::path(target).parent_path();
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) return IoError(error.value(), absl::StrCat("cannot make folder ", folder));
    if (rename(path_.c_str(), target.c_str()) != 0) {
      return IoError(errno, absl::StrCat("cannot rename ", path_, " to ", target));
    }
    is_finished_ = true;
    return folder;
  }

 private:
  absl::Status Mismatch() const {
    return rpc::MakeError(absl::StatusCode::kInvalidArgument, "DIGEST_MISMATCH",
                          absl::StrCat("the bytes do not hash to ", digest_.sha256(), " with ",
                                       digest_.size_bytes(), " bytes; send them again"));
  }

  FileArtifactStore& store_;
  const v1::Digest digest_;
  const std::string path_;
  const int fd_;
  base::Sha256Builder hash_;
  int64_t reserved_bytes_ = 0;
  bool is_finished_ = false;
};

absl::StatusOr<std::unique_ptr<FileArtifactStore>> FileArtifactStore::Open(const std::string& path,
                                                                           const Options& options) {
  std::error_code error;
  fs::create_directories(path + "/tmp", error);
  if (error) return IoError(error.value(), absl::StrCat("cannot make folder ", path, "/tmp"));
  // Held while this process makes its folder, so that no other one takes it for a leftover.
  MTMC_ASSIGN_OR_RETURN(const base::UniqueFd opening, OpenLock(path + "/lock"));
  if (flock(opening.get(), LOCK_EX) != 0) return IoError(errno, absl::StrCat("cannot lock ", path));
  RemoveLeftovers(path + "/tmp");
  std::string temporary = absl::StrCat(path, "/tmp/", base::MakeUuid4());
  fs::create_directory(temporary, error);
  if (error) return IoError(error.value(), absl::StrCat("cannot make folder ", temporary));
  MTMC_ASSIGN_OR_RETURN(base::UniqueFd lock, OpenLock(absl::StrCat(temporary, "/", kLock)));
  if (flock(lock.get(), LOCK_EX) != 0) {
    return IoError(errno, absl::StrCat("cannot lock ", temporary));
  }
  // Only a limit needs the sum, which walks over every blob.
  const int64_t stored = options.max_bytes > 0 ? TotalSize(path) : 0;
  return std::unique_ptr<FileArtifactStore>(
      new FileArtifactStore(path, options, stored, std::move(temporary), std::move(lock)));
}

FileArtifactStore::FileArtifactStore(std::string path, const Options& options, int64_t stored_bytes,
                                     std::string temporary, base::UniqueFd lock)
    : path_(std::move(path)),
      options_(options),
      temporary_(std::move(temporary)),
      lock_(std::move(lock)),
      stored_bytes_(stored_bytes) {}

std::string FileArtifactStore::BlobPath(const v1::Digest& digest) const {
  return absl::StrCat(path_, "/", digest.sha256().substr(0, 2), "/", digest.sha256());
}

absl::Status FileArtifactStore::Reserve(int64_t bytes) {
  const int64_t total = stored_bytes_ += bytes;
  if (options_.max_bytes == 0 || total <= options_.max_bytes) return absl::OkStatus();
  stored_bytes_ -= bytes;
  return DiskFull(absl::StrCat("its limit is ", options_.max_bytes, " bytes"));
}

absl::StatusOr<std::unique_ptr<FileArtifactWriter>> FileArtifactStore::Write(
    std::string_view bytes, const v1::Digest& digest) {
  MTMC_ASSIGN_OR_RETURN(const bool is_stored, Contains(digest));
  if (is_stored) return nullptr;
  MTMC_ASSIGN_OR_RETURN(auto writer, OpenWriter(digest));
  MTMC_RETURN_IF_ERROR(writer->Append(bytes));
  return writer;
}

absl::StatusOr<v1::Digest> FileArtifactStore::Put(std::string_view bytes) {
  v1::Digest digest = DigestOf(bytes);
  MTMC_ASSIGN_OR_RETURN(const auto writer, Write(bytes, digest));
  if (writer != nullptr) MTMC_RETURN_IF_ERROR(writer->Finish());
  return digest;
}

std::vector<absl::StatusOr<v1::Digest>> FileArtifactStore::PutAll(
    const std::vector<std::string>& blobs) {
  std::vector<absl::StatusOr<v1::Digest>> results;
  std::vector<std::unique_ptr<FileArtifactWriter>> writers(blobs.size());
  std::vector<std::string> folders(blobs.size());
  // Each step is done for all of them before the next: the first that waits for the disk
  // waits for all.
  const auto each = [&](auto step) {
    for (size_t i = 0; i < blobs.size(); ++i) {
      if (!results[i].ok() || writers[i] == nullptr) continue;
      const absl::Status status = step(i);
      if (!status.ok()) results[i] = status;
    }
  };
  for (size_t i = 0; i < blobs.size(); ++i) {
    results.emplace_back(DigestOf(blobs[i]));
    auto writer = Write(blobs[i], *results[i]);
    if (!writer.ok()) results[i] = writer.status();
    if (writer.ok()) writers[i] = *std::move(writer);
    if (writers[i] != nullptr) writers[i]->StartSync();
  }
  each([&](size_t i) { return writers[i]->Sync(); });
  each([&](size_t i) {
    auto folder = writers[i]->Publish();
    if (folder.ok()) folders[i] = *std::move(folder);
    return folder.status();
  });
  each([&](size_t i) { return SyncFolder(folders[i]); });
  return results;
}

absl::StatusOr<std::unique_ptr<ArtifactWriter>> FileArtifactStore::CreateWriter(
    const v1::Digest& digest) {
  return OpenWriter(digest);
}

absl::StatusOr<std::unique_ptr<FileArtifactWriter>> FileArtifactStore::OpenWriter(
    const v1::Digest& digest) {
  MTMC_RETURN_IF_ERROR(CheckDigest(digest));
  std::string path = absl::StrCat(temporary_, "/", base::MakeUuid4());
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return IoError(errno, absl::StrCat("cannot create ", path));
  return std::make_unique<FileArtifactWriter>(*this, digest, std::move(path), fd);
}

absl::StatusOr<bool> FileArtifactStore::Contains(const v1::Digest& digest) {
  MTMC_RETURN_IF_ERROR(CheckDigest(digest));

  struct stat info {};

  if (stat(BlobPath(digest).c_str(), &info) == 0) return true;
  if (errno == ENOENT) return false;
  return IoError(errno, absl::StrCat("cannot look at ", BlobPath(digest)));
}

absl::StatusOr<std::string> FileArtifactStore::Read(const v1::Digest& digest, int64_t offset,
                                                    int64_t max_bytes) {
  MTMC_RETURN_IF_ERROR(CheckDigest(digest));
  const std::string path = BlobPath(digest);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) {
    return rpc::MakeError(absl::StatusCode::kNotFound, "ARTIFACT_NOT_FOUND",
                          absl::StrCat("artifact ", digest.sha256(), " is not stored"),
                          {{"sha256", digest.sha256()}});
  }
  if (fd < 0) return IoError(errno, absl::StrCat("cannot open ", path));
  std::string bytes(static_cast<size_t>(max_bytes), '\0');
  size_t size = 0;
  ssize_t got = 1;
  while (got > 0 && size < bytes.size()) {
    got = pread(fd, bytes.data() + size, bytes.size() - size, offset + static_cast<off_t>(size));
    if (got > 0) size += static_cast<size_t>(got);
    if (got < 0 && errno == EINTR) got = 1;
  }
  const int number = errno;
  close(fd);
  if (got < 0) return IoError(number, absl::StrCat("cannot read ", path));
  bytes.resize(size);
  return bytes;
}

}  // namespace mtmc::store
