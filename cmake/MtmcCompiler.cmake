# SPDX-License-Identifier: Apache-2.0
#
# Compiler settings: the language, mtmc::warnings, coverage, linker.

include_guard(GLOBAL)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# Release keeps assertions: an MTMC_DCHECK that fires is cheaper than a wrong number.
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")
set(CMAKE_CXX_FLAGS_RELEASE "-O2")

option(MTMC_WERROR "Warnings are errors" OFF)
option(MTMC_COVERAGE "Instrument for gcov" OFF)
option(MTMC_FUZZ "Build fuzz targets with libFuzzer (clang)" OFF)

add_library(mtmc_warnings INTERFACE)
add_library(mtmc::warnings ALIAS mtmc_warnings)
target_compile_options(mtmc_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast
  -Woverloaded-virtual
  # Designated initialisers leave the other fields at their defaults on purpose.
  -Wno-missing-field-initializers
  # GCC 12 reports these for std::string and std::variant code that it has inlined
  # itself; clang and the sanitizers look for the real ones.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overread>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-dangling-pointer>
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  # Part of -Wconversion for clang, and not for GCC.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-sign-conversion>
  $<$<BOOL:${MTMC_WERROR}>:-Werror>)

if(MTMC_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "MTMC_FUZZ needs clang: pass -DCMAKE_CXX_COMPILER=clang++-14")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(MTMC_COVERAGE)
  add_compile_options(--coverage -fprofile-abs-path)
  add_link_options(--coverage)
endif()

# mold links a daemon in half a second where ld.bfd needs fifteen, and it
# resolves archives in any order.
find_program(MTMC_MOLD mold)
if(NOT MTMC_MOLD)
  message(FATAL_ERROR "mold is missing; run scripts/setup")
endif()
add_link_options(-fuse-ld=mold)
