// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// What jemalloc calls while it starts (MtmcThirdParty.cmake), without a look into the libraries
// that are loaded. One that is preloaded to move the clock, as libfaketime, stands in for the
// functions of these names and allocates before it can: neither would ever begin.
extern "C" {

// Two arenas, where there would be four a core: what a process of some seventy threads makes on
// one and drops on another then leaves fewer pages in part empty. What is free goes back to the
// system after 2 s, not 10.
const char* malloc_conf = "narenas:2,dirty_decay_ms:2000,muzzy_decay_ms:0";

int mtmc_jemalloc_clock_gettime(clockid_t clock, timespec* time) {
  return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
}

// jemalloc gives no attributes.
int mtmc_jemalloc_pthread_cond_init(pthread_cond_t* condition, const pthread_condattr_t*) {
  *condition = PTHREAD_COND_INITIALIZER;
  return 0;
}

}  // extern "C"
