// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mtmc::worker {

// Who a process is, and thereby what it may do.
//
// | party     | runs                | may                                        |
// | reference | the user's Python   | GPU, start compilers (torch.compile)       |
// | builder   | compilers           | start the linker; no GPU                   |
// | runner    | candidates' kernels | GPU; gives up the rest with Seal() (seal.h) |
// | daemon    | our code            | network, all its user's files              |
enum class PartyKind { kReference, kBuilder, kRunner, kDaemon };

std::string NameOf(PartyKind party);

// The rights of one party, whatever the host allows. A value; paths are
// absolute. Readable and device paths that do not exist are passed over.
struct Rights {
  struct Limits {
    uint64_t open_files = 4096;
    // Processes and threads; needs a user namespace, where only its own count.
    uint64_t processes = 4096;
    // Largest file that it may write.
    uint64_t file_bytes = uint64_t{64} << 30;
    // Address space; 0 is no limit. A CUDA process reserves terabytes.
    uint64_t address_bytes = 0;
  };

  PartyKind party = PartyKind::kBuilder;
  // Files and folders that it may read and execute.
  std::vector<std::string> readable;
  // Folders that it may change, besides private ones for TMPDIR and /dev/shm.
  std::vector<std::string> writable;
  // Device files that it may open for reading and writing.
  std::vector<std::string> devices;
  // Size of each of its private folders.
  uint64_t scratch_bytes = uint64_t{1} << 30;
  // Descriptors that it is started with: 0 to this - 1, all others are closed.
  int num_descriptors = 3;
  Limits limits;

  // Whether one of the devices is an NVIDIA GPU's.
  bool has_gpu() const;
};

struct RightsOptions {
  // On top of what every process of that party needs from the host.
  std::vector<std::string> readable;
  std::vector<std::string> writable;
  bool has_gpu = false;
  int num_descriptors = 3;
};

// The rights of a child on this host. REQUIRES: `party` is not kDaemon.
Rights MakeRights(PartyKind party, RightsOptions options);

}  // namespace mtmc::worker
