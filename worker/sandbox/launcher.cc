// SPDX-License-Identifier: Apache-2.0
#include "worker/sandbox/launcher.h"

#include <linux/close_range.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "worker/sandbox/confine.h"
#include "worker/sandbox/identity.h"
#include "worker/sandbox/landlock.h"
#include "worker/sandbox/minimal_root.h"
#include "worker/sandbox/seccomp_filter.h"
#include "worker/sandbox/supervisor.h"

namespace mtmc::worker {
namespace {

// One start. Lives on the stack of a process that has one thread.
class Start {
 public:
  Start(const LaunchSpec& spec, char** argv)
      : spec_(spec), argv_(argv), is_privileged_(IsPrivileged()), parent_(getppid()) {}

  absl::Status Run() {
    MTMC_RETURN_IF_ERROR(EnterNamespaces());
    if (!Has(Mechanism::kPidNamespace)) {
      MTMC_RETURN_IF_ERROR(EnterRoot());
      return Become();
    }
    return Supervise({.prepare = [this] { ExitUnless(EnterRoot()); },
                      .settle = [this] { ExitUnless(SettleInit()); },
                      .become = [this] { ExitUnless(Become()); }});
  }

 private:
  bool Has(Mechanism mechanism) const { return spec_.mechanisms.contains(mechanism); }

  static void ExitUnless(const absl::Status& status) {
    if (status.ok()) return;
    std::cerr << "mtmc-sandbox: " << status.message() << std::endl;
    _exit(kLauncherFailed);
  }

  // As root the user namespace comes last: then it owns none of the others, and
  // nothing in it can undo them.
  absl::Status EnterNamespaces() {
    if (is_privileged_) {
      const unsigned owner = Has(Mechanism::kUserNamespace) ? kOuterId : geteuid();
      MTMC_RETURN_IF_ERROR(GiveFolders(spec_.rights.writable, owner));
    } else if (Has(Mechanism::kUserNamespace)) {
      MTMC_RETURN_IF_ERROR(EnterUserNamespace());
    }
    int flags = 0;
    for (const auto& [mechanism, flag] : {std::pair{Mechanism::kPidNamespace, CLONE_NEWPID},
                                          std::pair{Mechanism::kMountNamespace, CLONE_NEWNS},
                                          std::pair{Mechanism::kNetworkNamespace, CLONE_NEWNET},
                                          std::pair{Mechanism::kIpcNamespace, CLONE_NEWIPC}}) {
      if (Has(mechanism)) flags |= flag;
    }
    if (flags == 0 || unshare(flags) == 0) return absl::OkStatus();
    return base::SystemError(errno, "make namespaces");
  }

  absl::Status EnterRoot() const {
    if (!Has(Mechanism::kMountNamespace)) return absl::OkStatus();
    return EnterMinimalRoot(spec_.rights, Has(Mechanism::kPidNamespace));
  }

  absl::Status DropIdentity(bool enters_namespace) const {
    if (is_privileged_ && Has(Mechanism::kUserNamespace)) {
      MTMC_RETURN_IF_ERROR(BecomeNobody(spec_.rights.devices));
      if (enters_namespace) MTMC_RETURN_IF_ERROR(EnterUserNamespace());
    }
    if (Has(Mechanism::kNoCapabilities)) MTMC_RETURN_IF_ERROR(DropCapabilities());
    if (!Has(Mechanism::kNoNewPrivileges)) return absl::OkStatus();
    return SetNoNewPrivileges();
  }

  // Init shares the program's user, but is none of its business.
  absl::Status SettleInit() const {
    MTMC_RETURN_IF_ERROR(DropIdentity(/*enters_namespace=*/false));
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0) return absl::OkStatus();
    return base::SystemError(errno, "close the memory of init");
  }

  LandlockRules Rules() const {
    LandlockRules rules{.readable = spec_.rights.readable,
                        .writable = spec_.rights.writable,
                        .devices = spec_.rights.devices};
    // Thread pools, allocators and drivers read their own status there; CUDA also
    // names its threads in /proc/self/task/*/comm, and does not start if it cannot.
    (spec_.rights.has_gpu() ? rules.rewritable : rules.readable).emplace_back("/proc");
    if (!Has(Mechanism::kMountNamespace)) return rules;
    // Made by ourselves, and all that is below.
    rules.readable.emplace_back("/etc");
    rules.listable.emplace_back("/");
    for (const char* folder : kPrivateFolders) rules.writable.emplace_back(folder);
    return rules;
  }

  absl::Status LoadFilter() const {
    const bool has_landlock = Has(Mechanism::kLandlock);
    return LoadPartyFilter(
        {.party = spec_.rights.party,
         .has_own_signals = Has(Mechanism::kPidNamespace) ||
                            (has_landlock && LandlockVersion() >= kLandlockScopes),
         .has_own_sockets = Has(Mechanism::kMountNamespace) && Has(Mechanism::kNetworkNamespace)});
  }

  absl::Status Become() const {
    MTMC_RETURN_IF_ERROR(DropIdentity(/*enters_namespace=*/true));
    MTMC_RETURN_IF_ERROR(DieWithParent());
    // The parent may have died before that; in a pid namespace init sees to it.
    if (!Has(Mechanism::kPidNamespace) && getppid() != parent_) {
      return absl::AbortedError("the daemon is gone");
    }
    if (chdir(spec_.working_folder.c_str()) != 0) {
      return base::SystemError(errno, "enter " + spec_.working_folder);
    }
    if (close_range(static_cast<unsigned>(spec_.rights.num_descriptors), ~0U,
                    CLOSE_RANGE_CLOEXEC) != 0) {
      return base::SystemError(errno, "close descriptors");
    }
    if (Has(Mechanism::kLimits)) {
      MTMC_RETURN_IF_ERROR(SetLimits(spec_.rights.limits, Has(Mechanism::kUserNamespace)));
    }
    if (Has(Mechanism::kLandlock)) MTMC_RETURN_IF_ERROR(RestrictWithLandlock(Rules()));
    if (Has(Mechanism::kSeccomp)) MTMC_RETURN_IF_ERROR(LoadFilter());
    execv(argv_[0], argv_);
    return base::SystemError(errno, absl::StrCat("start ", argv_[0]));
  }

  const LaunchSpec& spec_;
  char** const argv_;
  const bool is_privileged_;
  const pid_t parent_;
};

}  // namespace

absl::Status Launch(const LaunchSpec& spec, char** argv) { return Start(spec, argv).Run(); }

}  // namespace mtmc::worker
