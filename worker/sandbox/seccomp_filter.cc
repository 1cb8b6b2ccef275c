// SPDX-License-Identifier: Apache-2.0
#include "worker/sandbox/seccomp_filter.h"

#include <sched.h>
#include <seccomp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "worker/sandbox/system_calls.h"

namespace mtmc::worker {
namespace {

// clone() flags that make a namespace.
constexpr scmp_datum_t kNamespaceFlags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET |
                                         CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

// A filter in the making. Errors are latched, so that a table can be added
// without a check at every line.
class Filter {
 public:
  explicit Filter(uint32_t otherwise) : context_(seccomp_init(otherwise), &seccomp_release) {
    if (!context_) error_ = ENOMEM;
    // Binary search instead of a chain of some 300 comparisons.
    else
      Latch(seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2));
  }

  void ApplyToAllThreads() {
    if (error_ == 0) Latch(seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_TSYNC, 1));
  }

  // no_new_privs is set by its owner, and is a mechanism of its own.
  void KeepPrivilegeBit() {
    if (error_ == 0) Latch(seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_NNP, 0));
  }

  template <typename... Conditions>
  void Add(uint32_t action, int call, Conditions... conditions) {
    if (error_ != 0) return;
    Latch(seccomp_rule_add(context_.get(), action, call, sizeof...(conditions), conditions...));
  }

  void AddAll(uint32_t action, std::span<const int> calls) {
    for (const int call : calls) Add(action, call);
  }

  absl::Status Load() {
    if (error_ == 0) Latch(seccomp_load(context_.get()));
    return error_ == 0 ? absl::OkStatus() : base::SystemError(error_, "load a seccomp filter");
  }

 private:
  void Latch(int result) {
    // EDOM: the call does not exist on this architecture.
    if (result < 0 && result != -EDOM && error_ == 0) error_ = -result;
  }

  std::unique_ptr<void, decltype(&seccomp_release)> context_;
  int error_ = 0;
};

constexpr uint32_t kAllow = SCMP_ACT_ALLOW;
const uint32_t kRefuse = SCMP_ACT_ERRNO(EPERM);

void AddSignals(Filter& filter, const FilterOptions& options) {
  for (const int call : {SCMP_SYS(kill), SCMP_SYS(tgkill)}) {
    if (options.has_own_signals) {
      filter.Add(kAllow, call);
    } else {
      // abort() and raise() stay; the number is kept over exec.
      filter.Add(kAllow, call, SCMP_A0(SCMP_CMP_EQ, static_cast<scmp_datum_t>(getpid())));
    }
  }
  // The parent kills by process group: who could leave it would outlive that.
  if (options.has_own_signals || options.party == PartyKind::kReference) {
    filter.Add(kAllow, SCMP_SYS(setsid));
    filter.Add(kAllow, SCMP_SYS(setpgid));
  }
}

// CUDA and Python's multiprocessing make local sockets; no party has any other.
void AddSockets(Filter& filter, const FilterOptions& options) {
  filter.Add(kAllow, SCMP_SYS(socketpair), SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
  if (options.party == PartyKind::kBuilder) return;
  filter.Add(kAllow, SCMP_SYS(socket), SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
  filter.AddAll(kAllow, LocalSocketCalls());
  if (options.has_own_sockets) filter.Add(kAllow, SCMP_SYS(connect));
}

}  // namespace

absl::Status LoadPartyFilter(const FilterOptions& options) {
  Filter filter(SCMP_ACT_ERRNO(ENOSYS));
  filter.KeepPrivilegeBit();
  filter.AddAll(kAllow, OrdinaryCalls());
  filter.AddAll(kAllow, ProcessCalls());
  filter.Add(kAllow, SCMP_SYS(clone), SCMP_A0(SCMP_CMP_MASKED_EQ, kNamespaceFlags, 0));
  // Its own limits, which it may only lower; not those of the daemon.
  filter.Add(kAllow, SCMP_SYS(prlimit64), SCMP_A0(SCMP_CMP_EQ, 0));
  AddSignals(filter, options);
  AddSockets(filter, options);
  if (options.party == PartyKind::kRunner) filter.Add(kAllow, SCMP_SYS(seccomp));
  filter.AddAll(kRefuse, DangerousCalls());
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  // The leak check stops its own threads with it.
  filter.Add(kAllow, SCMP_SYS(ptrace));
#endif
  return filter.Load();
}

absl::Status LoadSeal(std::span<const int> calls, bool refuses_processes) {
  Filter filter(kAllow);
  filter.KeepPrivilegeBit();
  filter.ApplyToAllThreads();
  filter.AddAll(kRefuse, calls);
  if (refuses_processes) {
    filter.Add(kRefuse, SCMP_SYS(clone), SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
    // Its flags are out of a filter's sight; ENOSYS makes pthread_create() use clone().
    filter.Add(SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3));
  }
  const auto self = static_cast<scmp_datum_t>(getpid());
  for (const int call : {SCMP_SYS(kill), SCMP_SYS(tgkill), SCMP_SYS(rt_tgsigqueueinfo)}) {
    filter.Add(kRefuse, call, SCMP_A0(SCMP_CMP_NE, self));
  }
  return filter.Load();
}

absl::Status LoadEmptyFilter() {
  Filter filter(kAllow);
  filter.KeepPrivilegeBit();
  return filter.Load();
}

}  // namespace mtmc::worker
