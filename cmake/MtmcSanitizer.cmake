# SPDX-License-Identifier: Apache-2.0
#
# MTMC_SANITIZE: the value for -fsanitize=. With `thread`, the calls of absl::Mutex
# are wrapped, because Debian's Abseil does not tell the sanitizer about its locks.

include_guard(GLOBAL)

set(MTMC_SANITIZE "" CACHE STRING "Value for -fsanitize=, such as address,undefined or thread")
set(MTMC_SANITIZER_SOURCES "")
set(MTMC_SANITIZER_ENVIRONMENT "")
if(NOT MTMC_SANITIZE)
  return()
endif()

add_compile_options(-fsanitize=${MTMC_SANITIZE} -fno-omit-frame-pointer)
add_link_options(-fsanitize=${MTMC_SANITIZE})
if(MTMC_SANITIZE MATCHES "undefined")
  add_compile_options(-fno-sanitize-recover=undefined)
  # Clang 14 cannot assemble coroutines with what this check puts before functions.
  add_compile_options($<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function>)
endif()
if(MTMC_SANITIZE MATCHES "thread")
  # Asio uses a fence that the sanitizer does not model, to no harm.
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  # Every executable gets this source; the wrapped names are those it defines.
  set(MTMC_SANITIZER_SOURCES ${PROJECT_SOURCE_DIR}/cmake/tsan_mutex.cc)
  set(MTMC_SANITIZER_ENVIRONMENT
      "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan.supp")
  file(STRINGS ${MTMC_SANITIZER_SOURCES} lines REGEX "_ZN[A-Za-z0-9_]+")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "_ZN[A-Za-z0-9_]+" name "${line}")
    add_link_options(LINKER:--wrap=${name})
  endforeach()
endif()
