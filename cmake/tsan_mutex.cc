// SPDX-License-Identifier: Apache-2.0

// Tells ThreadSanitizer what absl::Mutex and absl::Notification of the Debian package do. The
// package is not built for the sanitizer, so that every use of a mutex would look like a race. The
// linker sends the calls here (--wrap, cmake/MtmcSanitizer.cmake), also those of gRPC, whose locks
// are Abseil's.
//
// Rule: what a thread did before it lets go of a mutex happens before what the
// next owner does. Conditions are evaluated by whoever unlocks, outside of that
// rule but under the real lock, so reads inside of the calls are not looked at.

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}

namespace {

struct IgnoreReads {
  IgnoreReads() { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }

  ~IgnoreReads() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
};

// Runs `call`, during which the mutex is released, acquired, or both.
template <typename Call>
auto Run(void* mutex, Call call) {
  __tsan_release(mutex);
  const auto result = [&] {
    const IgnoreReads ignore;
    return call();
  }();
  __tsan_acquire(mutex);
  return result;
}

}  // namespace

// Declares the real function and defines its wrapper. `name` is the mangled name,
// `mutex` the parameter that is the mutex.
#define MTMC_WRAP(result, name, parameters, arguments, mutex) \
  result Real_##name parameters asm("__real_" #name);         \
  result Wrap_##name parameters asm("__wrap_" #name);         \
  result Wrap_##name parameters {                             \
    return Run(mutex, [&] { return Real_##name arguments; }); \
  }

// The same for functions without a result.
#define MTMC_WRAP_VOID(name, parameters, arguments, mutex)   \
  void Real_##name parameters asm("__real_" #name);          \
  void Wrap_##name parameters asm("__wrap_" #name);          \
  void Wrap_##name parameters {                              \
    Run(mutex, [&] { return Real_##name arguments, true; }); \
  }

using absl::Condition;
using absl::CondVar;
using absl::Duration;
using absl::Mutex;
using absl::Notification;
using absl::Time;

MTMC_WRAP_VOID(_ZN4absl7debian35Mutex4LockEv, (Mutex * mu), (mu), mu)
MTMC_WRAP_VOID(_ZN4absl7debian35Mutex6UnlockEv, (Mutex * mu), (mu), mu)
MTMC_WRAP(bool, _ZN4absl7debian35Mutex7TryLockEv, (Mutex * mu), (mu), mu)
MTMC_WRAP_VOID(_ZN4absl7debian35Mutex10ReaderLockEv, (Mutex * mu), (mu), mu)
MTMC_WRAP_VOID(_ZN4absl7debian35Mutex12ReaderUnlockEv, (Mutex * mu), (mu), mu)
MTMC_WRAP_VOID(_ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE, (Mutex * mu, const Condition& c),
               (mu, c), mu)
MTMC_WRAP(bool, _ZN4absl7debian35Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE,
          (Mutex * mu, const Condition& c, Duration t), (mu, c, t), mu)
MTMC_WRAP(bool, _ZN4absl7debian35Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE,
          (Mutex * mu, const Condition& c, Time t), (mu, c, t), mu)
MTMC_WRAP_VOID(_ZN4absl7debian35Mutex8LockWhenERKNS0_9ConditionE, (Mutex * mu, const Condition& c),
               (mu, c), mu)
MTMC_WRAP(bool, _ZN4absl7debian35Mutex19LockWhenWithTimeoutERKNS0_9ConditionENS0_8DurationE,
          (Mutex * mu, const Condition& c, Duration t), (mu, c, t), mu)
MTMC_WRAP(bool, _ZN4absl7debian35Mutex20LockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE,
          (Mutex * mu, const Condition& c, Time t), (mu, c, t), mu)
MTMC_WRAP_VOID(_ZN4absl7debian37CondVar4WaitEPNS0_5MutexE, (CondVar * cv, Mutex* mu), (cv, mu), mu)
MTMC_WRAP(bool, _ZN4absl7debian37CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE,
          (CondVar * cv, Mutex* mu, Duration t), (cv, mu, t), mu)
MTMC_WRAP(bool, _ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE,
          (CondVar * cv, Mutex* mu, Time t), (cv, mu, t), mu)

// Their state is read without the mutex once it is set.
MTMC_WRAP_VOID(_ZN4absl7debian312Notification6NotifyEv, (Notification * n), (n), n)
MTMC_WRAP_VOID(_ZNK4absl7debian312Notification19WaitForNotificationEv, (Notification * n), (n), n)
MTMC_WRAP(bool, _ZNK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_8DurationE,
          (Notification * n, Duration t), (n, t), n)
MTMC_WRAP(bool, _ZNK4absl7debian312Notification31WaitForNotificationWithDeadlineENS0_4TimeE,
          (Notification * n, Time t), (n, t), n)
