// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace mtmc::config {

// Where mtmc keeps its files, by the XDG base directory rules. Functions only
// name the folders; who writes makes them.
//
// | function   | variable         | default                                  |
// | DataDir    | MTMC_DATA_DIR    | $XDG_DATA_HOME/mtmc or ~/.local/share/mtmc |
// | CacheDir   | MTMC_CACHE_DIR   | $XDG_CACHE_HOME/mtmc or ~/.cache/mtmc      |
// | ConfigDir  | MTMC_CONFIG_DIR  | $XDG_CONFIG_HOME/mtmc or ~/.config/mtmc    |
// | RuntimeDir | MTMC_RUNTIME_DIR | $XDG_RUNTIME_DIR/mtmc or /tmp/mtmc-<uid>   |

// The store and the artifacts: losing it loses results.
std::filesystem::path DataDir();

// What can be made again.
std::filesystem::path CacheDir();

std::filesystem::path ConfigDir();

// Sockets and process files of this boot.
std::filesystem::path RuntimeDir();

// The folder of the running program, where its siblings (mtmc-worker, ...) lie.
std::filesystem::path ProgramDir();

// `relative` under the installation that the program belongs to, which has the
// folders bin, lib and share: InstalledFile("share/mtmc/mtmc.binpb").
std::filesystem::path InstalledFile(const std::string& relative);

}  // namespace mtmc::config
