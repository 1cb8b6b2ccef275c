# SPDX-License-Identifier: Apache-2.0
#
# Every third-party library as one target mtmc::<name>. gRPC, Protobuf, Abseil and
# friends are linked statically and hidden (`--exclude-libs,ALL`), because
# libtorch_cpu.so exports an older Protobuf of its own: were ours exported from an
# executable, the dynamic linker would bind libtorch's calls to it.
#
# libstdc++ stays dynamic: libtorch and prometheus-cpp bring it into the process
# anyway, and two copies of it break exceptions and locales. Every distribution
# with glibc >= 2.36 ships a libstdc++ at least as new as the one built against.

include_guard(GLOBAL)

find_package(PkgConfig 1.8 REQUIRED)
find_package(Threads REQUIRED)
set(Boost_USE_STATIC_LIBS ON)
find_package(Boost 1.81 REQUIRED COMPONENTS system url json)
find_package(Catch2 2.13 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(spdlog 1.10 REQUIRED)
find_package(prometheus-cpp REQUIRED COMPONENTS core)  # its config names no version

# Creates mtmc::<name> from pkg-config modules, each library as its static archive
# where there is one, in the order pkg-config gives with the last mention kept.
function(_mtmc_static_target name)
  string(REPLACE ";" " " wanted "${ARGN}")
  execute_process(COMMAND ${PKG_CONFIG_EXECUTABLE} --static --libs ${ARGN}
                  OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "pkg-config knows no ${wanted}; run scripts/setup")
  endif()
  separate_arguments(flags UNIX_COMMAND "${flags}")
  list(FILTER flags INCLUDE REGEX "^-l")
  list(REVERSE flags)
  list(REMOVE_DUPLICATES flags)
  list(REVERSE flags)
  set(libraries "")
  foreach(flag IN LISTS flags)
    string(SUBSTRING ${flag} 2 -1 library)
    find_library(MTMC_STATIC_${library} lib${library}.a)
    mark_as_advanced(MTMC_STATIC_${library})
    if(library MATCHES "^(dl|rt|m|pthread|atomic)$" OR NOT MTMC_STATIC_${library})
      list(APPEND libraries ${library})
    else()
      list(APPEND libraries ${MTMC_STATIC_${library}})
    endif()
  endforeach()
  _mtmc_interface(${name} ${libraries} Threads::Threads)
  # Clang links its sanitizers as archives, and every library of the process must
  # find their malloc.
  if(NOT (MTMC_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang"))
    target_link_options(mtmc_third_party_${name} INTERFACE "LINKER:--exclude-libs,ALL")
  endif()
endfunction()

function(_mtmc_interface name)
  add_library(mtmc_third_party_${name} INTERFACE)
  target_link_libraries(mtmc_third_party_${name} INTERFACE ${ARGN})
  add_library(mtmc::${name} ALIAS mtmc_third_party_${name})
endfunction()

set(MTMC_ABSL_MODULES
  absl_any_invocable absl_cleanup absl_cord absl_flat_hash_map absl_flat_hash_set absl_hash
  absl_random_random absl_span absl_stacktrace absl_status absl_statusor absl_str_format
  absl_strings absl_symbolize absl_synchronization absl_time)
_mtmc_static_target(absl ${MTMC_ABSL_MODULES})
_mtmc_static_target(protobuf protobuf ${MTMC_ABSL_MODULES})
# Reflection is not in grpc++'s own list; its archive goes first.
_mtmc_static_target(grpc_core grpc++ protobuf ${MTMC_ABSL_MODULES})
find_library(MTMC_STATIC_grpc_reflection libgrpc++_reflection.a REQUIRED)
mark_as_advanced(MTMC_STATIC_grpc_reflection)
_mtmc_interface(grpc ${MTMC_STATIC_grpc_reflection} mtmc::grpc_core)
_mtmc_static_target(openssl openssl)
_mtmc_static_target(yaml yaml-cpp)
_mtmc_static_target(pcre2 libpcre2-8)
_mtmc_static_target(utf8proc libutf8proc)
_mtmc_static_target(seccomp libseccomp)
_mtmc_static_target(sqlite sqlite3)

_mtmc_interface(catch2 Catch2::Catch2WithMain)
_mtmc_interface(cli11 CLI11::CLI11)
_mtmc_interface(json nlohmann_json::nlohmann_json)
_mtmc_interface(boost Boost::headers Boost::url Boost::json Threads::Threads)
_mtmc_interface(prometheus prometheus-cpp::core)
_mtmc_interface(opencl_headers)
# Header-only, so that a bundle needs neither libspdlog nor libfmt. Not through
# spdlog's own target, which links libfmt.
_mtmc_interface(spdlog Threads::Threads)
target_compile_definitions(mtmc_third_party_spdlog INTERFACE SPDLOG_FMT_EXTERNAL FMT_HEADER_ONLY)

find_library(MTMC_SOCI_CORE libsoci_core.a REQUIRED)
find_library(MTMC_SOCI_SQLITE libsoci_sqlite3.a REQUIRED)
find_library(MTMC_SOCI_POSTGRESQL libsoci_postgresql.a REQUIRED)
mark_as_advanced(MTMC_SOCI_CORE MTMC_SOCI_SQLITE MTMC_SOCI_POSTGRESQL)
# PostgreSQL's own library is opened at run time (server/store/libpq.h); only its headers
# are needed.
find_path(MTMC_LIBPQ_HEADERS libpq-fe.h PATH_SUFFIXES postgresql REQUIRED)
mark_as_advanced(MTMC_LIBPQ_HEADERS)
_mtmc_interface(soci ${MTMC_SOCI_SQLITE} ${MTMC_SOCI_POSTGRESQL} ${MTMC_SOCI_CORE} mtmc::sqlite
                ${CMAKE_DL_LIBS})
target_include_directories(mtmc_third_party_soci SYSTEM INTERFACE ${MTMC_LIBPQ_HEADERS})

# malloc of the whole process, for a daemon whose many threads make and drop many messages. As
# one object: symbols of archives are hidden (above), and libraries that are opened have to
# find this malloc, too. A sanitizer has its own.
find_library(MTMC_JEMALLOC libjemalloc_pic.a REQUIRED)
mark_as_advanced(MTMC_JEMALLOC)
if(MTMC_SANITIZE)
  _mtmc_interface(jemalloc)
else()
  set(object ${PROJECT_BINARY_DIR}/jemalloc.o)
  if("${MTMC_JEMALLOC}" IS_NEWER_THAN "${object}")
    execute_process(
      COMMAND ${CMAKE_CXX_COMPILER} -r -nostdlib -fuse-ld=bfd -Wl,--whole-archive ${MTMC_JEMALLOC}
              -Wl,--no-whole-archive -o ${object}
      COMMAND_ERROR_IS_FATAL ANY)
    foreach(function clock_gettime pthread_cond_init)
      list(APPEND renames --redefine-sym ${function}=mtmc_jemalloc_${function})
    endforeach()
    execute_process(COMMAND ${CMAKE_OBJCOPY} ${renames} ${object} COMMAND_ERROR_IS_FATAL ANY)
  endif()
  _mtmc_interface(jemalloc ${object} Threads::Threads ${CMAKE_DL_LIBS} m)
  target_sources(mtmc_third_party_jemalloc
                 INTERFACE ${CMAKE_CURRENT_LIST_DIR}/jemalloc_start.cc)
endif()

# libcurl is opened at run time (server/s3/curl_library.h).
find_path(MTMC_CURL_HEADERS curl/curl.h REQUIRED)
mark_as_advanced(MTMC_CURL_HEADERS)
_mtmc_interface(curl_headers ${CMAKE_DL_LIBS})
target_include_directories(mtmc_third_party_curl_headers SYSTEM INTERFACE ${MTMC_CURL_HEADERS})

find_program(MTMC_PROTOC protoc REQUIRED)
find_program(MTMC_GRPC_PLUGIN grpc_cpp_plugin REQUIRED)

# The shared libraries that a bundle must carry beside the binaries.
get_target_property(MTMC_PROMETHEUS_LIBRARY prometheus-cpp::core IMPORTED_LOCATION_NONE)
install(FILES $<TARGET_SONAME_FILE:prometheus-cpp::core> DESTINATION lib)
