// SPDX-License-Identifier: Apache-2.0
#include "server/store/file_artifact_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
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

constexpr int64_t kReadBytes = 256 << 10;

absl::Status DiskFull(const std::string& detail) {
  return rpc::MakeError(absl::StatusCode::kResourceExhausted, "DISK_FULL",
                        absl::StrCat("the artifact store is full: ", detail,
                                     "; free space in the data directory and try again"));
}

absl::Status IoError(int number, const std::string& what) {
  if (number == ENOSPC || number == EDQUOT || number == EFBIG) return DiskFull(what);
  return base::SystemError(number, what);
}

absl::Status SyncFolder(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return IoError(errno, absl::StrCat("cannot open folder ", path));
  const int result = fsync(fd);
  const int number = errno;
  close(fd);
  return result == 0 ? absl::OkStatus() : IoError(number, absl::StrCat("cannot sync ", path));
}

// The folders of the blobs, `00` to `ff`, so that none has to be made durable later.
absl::Status MakeFolders(const std::string& path) {
  for (int i = 0; i < 256; ++i) {
    const std::string folder = absl::StrCat(path, "/", absl::Hex(i, absl::kZeroPad2));
    if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) {
      return IoError(errno, absl::StrCat("cannot make folder ", folder));
    }
  }
  return SyncFolder(path);
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

// Owns the temporary file until it is a blob. Of a blob that is stored already it has no
// file, and only checks what comes.
class FileArtifactWriter final : public ArtifactWriter {
 public:
  FileArtifactWriter(FileArtifactStore& store, v1::Digest digest, std::string path,
                     base::UniqueFd fd)
      : store_(store), digest_(std::move(digest)), path_(std::move(path)), fd_(std::move(fd)) {}

  ~FileArtifactWriter() override {
    if (!path_.empty()) unlink(path_.c_str());
    store_.stored_bytes_ -= reserved_bytes_;
  }

  FileArtifactWriter(const FileArtifactWriter&) = delete;
  FileArtifactWriter& operator=(const FileArtifactWriter&) = delete;

  absl::Status Append(std::string_view bytes) override {
    // More than was promised cannot hash to the digest; refuse before it is stored.
    if (size_ + static_cast<int64_t>(bytes.size()) > digest_.size_bytes())
      return DigestMismatch(digest_);
    if (!path_.empty()) MTMC_RETURN_IF_ERROR(Write(bytes));
    size_ += static_cast<int64_t>(bytes.size());
    hash_.Append(bytes);
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    MTMC_RETURN_IF_ERROR(Sync());
    MTMC_RETURN_IF_ERROR(Publish());
    return SyncName();
  }

  // Begins what Sync() waits for, where the system can.
  void StartSync() const {
    if (!path_.empty()) sync_file_range(fd_.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
  }

  // The three parts of Finish. The first: the bytes are right, and on disk.
  absl::Status Sync() {
    if (size_ != digest_.size_bytes() || hash_.Finish().sha256_hex != digest_.sha256()) {
      return DigestMismatch(digest_);
    }
    if (path_.empty() || fsync(fd_.get()) == 0) return absl::OkStatus();
    return IoError(errno, absl::StrCat("cannot sync ", path_));
  }

  // The blob is there.
  absl::Status Publish() {
    if (path_.empty()) return CheckStillStored();
    MTMC_ASSIGN_OR_RETURN(const bool is_new, store_.Install(path_, digest_));
    // The blob keeps them now, or what was there already does.
    if (!is_new) store_.stored_bytes_ -= reserved_bytes_;
    reserved_bytes_ = 0;
    return absl::OkStatus();
  }

  // And its name is on disk, also where another upload gave it that only just now.
  absl::Status SyncName() { return SyncFolder(fs::path(store_.BlobPath(digest_)).parent_path()); }

 private:
  absl::Status Write(std::string_view bytes) {
    const auto size = static_cast<int64_t>(bytes.size());
    MTMC_RETURN_IF_ERROR(store_.Reserve(size));
    reserved_bytes_ += size;
    while (!bytes.empty()) {
      const ssize_t written = write(fd_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return IoError(errno, absl::StrCat("cannot write ", path_));
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return absl::OkStatus();
  }

  absl::Status CheckStillStored() const {
    MTMC_ASSIGN_OR_RETURN(const bool is_stored, store_.IsStored(digest_));
    if (is_stored) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("artifact ", digest_.sha256(),
                                               " was removed while it was sent; send it again"));
  }

  FileArtifactStore& store_;
  const v1::Digest digest_;
  // Empty where there is no file.
  const std::string path_;
  const base::UniqueFd fd_;
  base::Sha256Builder hash_;
  int64_t size_ = 0;
  // Of the store's bytes, until they are the blob's.
  int64_t reserved_bytes_ = 0;
};

absl::StatusOr<std::unique_ptr<FileArtifactStore>> FileArtifactStore::Open(const std::string& path,
                                                                           const Options& options) {
  std::error_code error;
  const bool is_new = fs::create_directories(path, error);
  if (!error && is_new) {
    MTMC_RETURN_IF_ERROR(SyncFolder(fs::canonical(path, error).parent_path()));
  }
  if (!error) fs::create_directory(path + "/tmp", error);
  if (error) return IoError(error.value(), absl::StrCat("cannot make folder ", path, "/tmp"));
  // Held while this process makes its folder, so that no other one takes it for a leftover.
  MTMC_ASSIGN_OR_RETURN(const base::UniqueFd opening, OpenLock(path + "/lock"));
  if (flock(opening.get(), LOCK_EX) != 0) return IoError(errno, absl::StrCat("cannot lock ", path));
  MTMC_RETURN_IF_ERROR(MakeFolders(path));
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

absl::StatusOr<std::unique_ptr<ArtifactWriter>> FileArtifactStore::CreateWriter(
    const v1::Digest& digest) {
  return OpenWriter(digest);
}

std::vector<absl::StatusOr<v1::Digest>> FileArtifactStore::PutAll(
    const std::vector<std::string>& blobs) {
  std::vector<absl::StatusOr<v1::Digest>> results;
  std::vector<std::unique_ptr<FileArtifactWriter>> writers(blobs.size());
  for (size_t i = 0; i < blobs.size(); ++i) {
    results.emplace_back(DigestOf(blobs[i]));
    auto writer = OpenWriter(*results[i]);
    const absl::Status status = writer.ok() ? (*writer)->Append(blobs[i]) : writer.status();
    if (!status.ok()) {
      results[i] = status;
      continue;
    }
    writers[i] = *std::move(writer);
    writers[i]->StartSync();
  }
  // Each step is done for all of them before the next: the first that waits for the disk
  // waits for all.
  for (const auto step :
       {&FileArtifactWriter::Sync, &FileArtifactWriter::Publish, &FileArtifactWriter::SyncName}) {
    for (size_t i = 0; i < blobs.size(); ++i) {
      if (!results[i].ok()) continue;
      const absl::Status status = ((*writers[i]).*step)();
      if (!status.ok()) results[i] = status;
    }
  }
  return results;
}

absl::StatusOr<std::unique_ptr<FileArtifactWriter>> FileArtifactStore::OpenWriter(
    const v1::Digest& digest) {
  MTMC_ASSIGN_OR_RETURN(const bool is_stored, Contains(digest));
  if (is_stored) return std::make_unique<FileArtifactWriter>(*this, digest, "", base::UniqueFd());
  std::string path = absl::StrCat(temporary_, "/", base::MakeUuid4());
  base::UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (fd.get() < 0) return IoError(errno, absl::StrCat("cannot create ", path));
  return std::make_unique<FileArtifactWriter>(*this, digest, std::move(path), std::move(fd));
}

absl::StatusOr<bool> FileArtifactStore::Contains(const v1::Digest& digest) {
  MTMC_RETURN_IF_ERROR(CheckDigest(digest));
  return IsStored(digest);
}

absl::StatusOr<bool> FileArtifactStore::IsStored(const v1::Digest& digest) const {
  struct stat info {};

  if (stat(BlobPath(digest).c_str(), &info) == 0) {
    const bool has_size = digest.size_bytes() == 0 || info.st_size == digest.size_bytes();
    return has_size && !damaged_.Contains(digest.sha256());
  }
  if (errno == ENOENT) return false;
  return IoError(errno, absl::StrCat("cannot look at ", BlobPath(digest)));
}

absl::StatusOr<bool> FileArtifactStore::Install(const std::string& file, const v1::Digest& digest) {
  const std::string target = BlobPath(digest);
  // Unlike a rename, leaves alone what another upload has put there meanwhile.
  if (link(file.c_str(), target.c_str()) == 0) return true;
  MTMC_ASSIGN_OR_RETURN(const bool is_stored, IsStored(digest));
  if (is_stored) return false;
  // It is damaged, or the file system has no links.
  std::error_code error;
  const auto size = static_cast<int64_t>(fs::file_size(target, error));
  if (!error) stored_bytes_ -= size;
  if (rename(file.c_str(), target.c_str()) != 0) {
    return IoError(errno, absl::StrCat("cannot rename ", file, " to ", target));
  }
  damaged_.Remove(digest.sha256());
  return true;
}

absl::Status FileArtifactStore::Read(const v1::Digest& digest, int64_t offset,
                                     const ArtifactSink& sink) {
  MTMC_RETURN_IF_ERROR(CheckDigest(digest));
  const std::string path = BlobPath(digest);
  const base::UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0 && errno == ENOENT) return ArtifactNotFound(digest);
  if (fd.get() < 0) return IoError(errno, absl::StrCat("cannot open ", path));
  CheckedReading reading(digest, offset, sink, damaged_);
  // Most blobs are programs of some kilobytes.
  const int64_t size = digest.size_bytes() > 0 ? digest.size_bytes() : kReadBytes;
  std::string buffer(static_cast<size_t>(std::min(size, kReadBytes)), '\0');
  while (true) {
    const ssize_t got = read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return IoError(errno, absl::StrCat("cannot read ", path));
    if (got == 0) return reading.Finish();
    MTMC_RETURN_IF_ERROR(reading.Add(std::string_view(buffer).substr(0, static_cast<size_t>(got))));
  }
}

absl::Status FileArtifactStore::List(const std::function<absl::Status(const StoredBlob&)>& take) {
  for (int i = 0; i < 256; ++i) {
    const std::string folder = absl::StrCat(path_, "/", absl::Hex(i, absl::kZeroPad2));
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      struct stat info {};

      StoredBlob blob;
      blob.digest.set_sha256(entry.path().filename().string());
      // Of what has gone meanwhile, nothing is told.
      const bool is_blob = CheckDigest(blob.digest).ok() &&
                           stat(entry.path().c_str(), &info) == 0 && S_ISREG(info.st_mode);
      if (!is_blob) continue;
      blob.digest.set_size_bytes(info.st_size);
      blob.modified = absl::TimeFromTimespec(info.st_mtim);
      MTMC_RETURN_IF_ERROR(take(blob));
    }
    if (error) return IoError(error.value(), absl::StrCat("cannot list ", folder));
  }
  return absl::OkStatus();
}

absl::Status FileArtifactStore::Remove(const v1::Digest& digest) {
  MTMC_RETURN_IF_ERROR(CheckDigest(digest));
  const std::string path = BlobPath(digest);
  std::error_code error;
  const auto size = static_cast<int64_t>(fs::file_size(path, error));
  if (error == std::errc::no_such_file_or_directory) return absl::OkStatus();
  if (unlink(path.c_str()) != 0) return IoError(errno, absl::StrCat("cannot remove ", path));
  if (!error) stored_bytes_ -= size;
  damaged_.Remove(digest.sha256());
  return absl::OkStatus();
}

}  // namespace mtmc::store
