// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// What jemalloc calls while it starts (MtmcThirdParty.cmake), without a look into the libraries
// that are loaded. One that is preloaded to move the clock, as libfaketime, stands in for the
// functions of these names and allocates before it can: neither would ever begin.
extern "C" {

int mtmc_jemalloc_clock_gettime(clockid_t clock, timespec* time) {
  return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
}

// jemalloc gives no attributes.
int mtmc_jemalloc_pthread_cond_init(pthread_cond_t* condition, const pthread_condattr_t*) {
  *condition = PTHREAD_COND_INITIALIZER;
  return 0;
}

}  // extern "C"
