# SPDX-License-Identifier: Apache-2.0
#
# The target functions of mtmc. A component's CMakeLists.txt uses nothing else.
#
#   mtmc_library(
#     NAME graph                        # target mtmc_graph, alias mtmc::graph
#     HDRS graph.h graph_proto.h        # relative to the component's folder
#     SRCS graph.cc graph_proto.cc
#     DEPS mtmc::base                   # what the headers include
#     PRIVATE_DEPS mtmc::proto)         # what only the sources include
#
#   mtmc_test(
#     NAME graph                        # one binary mtmc_graph_test per component
#     SRCS graph_test.cc graph_proto_test.cc
#     DEPS mtmc::graph mtmc::testing
#     LABELS unit                       # default; or integration, gpu, slow
#     TIMEOUT 240                       # seconds per test case; default 120; ten
#                                       # times as many with a sanitizer
#     DATA testdata)                    # defines MTMC_TEST_DATA, an absolute path
#
#   mtmc_executable(
#     NAME mtmc-worker                  # build/<preset>/bin/mtmc-worker
#     SRCS worker_main.cc
#     DEPS mtmc::worker_daemon)
#
#   mtmc_plugin(                        # build/<preset>/lib/mtmc_aten.so, dlopened
#     NAME aten SRCS aten_plugin.cc DEPS mtmc::libtorch_cpu)
#
#   mtmc_fuzz(
#     NAME program                      # build/<preset>/fuzz/program
#     SRCS program_fuzz.cc              # defines LLVMFuzzerTestOneInput
#     CORPUS testdata/program_corpus    # folder of seed inputs
#     DEPS mtmc::program)               # all of them: target fuzz_targets
#
# Rules that these functions enforce at configure time:
# 1. Only aliases (`a::b`) are linked, so that a typo does not become `-lfoo`.
# 2. A dependency on one of ours must be defined already. The root file adds the
#    folders in layer order, so this refuses both cycles and upward includes.
# 3. A dependency may not lie in a higher layer (proto < common < kernel <
#    policy < worker < server < client < tests); the message names both sides.
# 4. Executables and tests are not dependencies.
#
# Third-party targets (cmake/MtmcThirdParty.cmake): mtmc::absl, mtmc::protobuf,
# mtmc::grpc, mtmc::spdlog, mtmc::prometheus, mtmc::boost, mtmc::json,
# mtmc::yaml, mtmc::cli11, mtmc::soci, mtmc::pcre2, mtmc::seccomp, mtmc::openssl,
# mtmc::catch2, mtmc::opencl_headers, mtmc::cuda_headers, mtmc::libtorch_cpu,
# mtmc::libtorch_cuda.

include_guard(GLOBAL)
include(Catch)

set(MTMC_LAYERS proto common kernel policy worker server client tests)

# Sets `out` to the layer number of the calling folder.
function(_mtmc_layer out)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  string(REGEX REPLACE "/.*" "" top "${folder}")
  list(FIND MTMC_LAYERS "${top}" layer)
  if(layer EQUAL -1)
    message(FATAL_ERROR "folder '${folder}' has no layer; layers are: ${MTMC_LAYERS}")
  endif()
  set(${out} ${layer} PARENT_SCOPE)
endfunction()

# Refuses any dependency that breaks rules 1 to 4 above.
function(_mtmc_check_deps target)
  _mtmc_layer(layer)
  foreach(dep IN LISTS ARGN)
    if(NOT dep MATCHES "::")
      message(FATAL_ERROR "${target}: '${dep}' is not an alias; link mtmc::<name>")
    endif()
    if(NOT TARGET ${dep})
      message(FATAL_ERROR "${target}: '${dep}' is not defined yet. Either it is misspelt, or its "
                          "folder comes later in the root CMakeLists.txt, which is the layer order.")
    endif()
    get_target_property(dep_layer ${dep} MTMC_LAYER)
    if(dep_layer AND dep_layer GREATER layer)
      list(GET MTMC_LAYERS ${layer} own_name)
      list(GET MTMC_LAYERS ${dep_layer} dep_name)
      message(FATAL_ERROR "${target} (layer ${own_name}) may not depend on ${dep} (layer ${dep_name})")
    endif()
  endforeach()
endfunction()

function(_mtmc_mark target)
  _mtmc_layer(layer)
  set_target_properties(${target} PROPERTIES MTMC_LAYER ${layer})
endfunction()

function(_mtmc_parse prefix target_kind options one many)
  cmake_parse_arguments(ARG "${options}" "${one}" "${many}" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS OR NOT ARG_NAME)
    message(FATAL_ERROR "${target_kind}: NAME is required; not understood: ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  foreach(name IN LISTS options one many)
    set(${prefix}_${name} "${ARG_${name}}" PARENT_SCOPE)
  endforeach()
endfunction()

function(mtmc_library)
  _mtmc_parse(LIB mtmc_library "" "NAME" "HDRS;SRCS;DEPS;PRIVATE_DEPS" ${ARGN})
  set(target mtmc_${LIB_NAME})
  _mtmc_check_deps(${target} ${LIB_DEPS} ${LIB_PRIVATE_DEPS})
  if(LIB_SRCS)
    add_library(${target} STATIC ${LIB_SRCS})
    target_link_libraries(${target} PUBLIC ${LIB_DEPS} PRIVATE ${LIB_PRIVATE_DEPS} mtmc::warnings)
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ${LIB_DEPS} ${LIB_PRIVATE_DEPS})
    set(scope INTERFACE)
  endif()
  add_library(mtmc::${LIB_NAME} ALIAS ${target})
  if(LIB_HDRS)
    target_sources(${target} ${scope} FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${LIB_HDRS})
  endif()
  target_include_directories(${target} ${scope} ${PROJECT_SOURCE_DIR})
  _mtmc_mark(${target})
endfunction()

function(mtmc_executable)
  _mtmc_parse(EXE mtmc_executable "" "NAME" "SRCS;DEPS" ${ARGN})
  _mtmc_check_deps(${EXE_NAME} ${EXE_DEPS})
  add_executable(${EXE_NAME} ${EXE_SRCS} ${MTMC_SANITIZER_SOURCES})
  target_link_libraries(${EXE_NAME} PRIVATE ${EXE_DEPS} mtmc::warnings)
  target_include_directories(${EXE_NAME} PRIVATE ${PROJECT_SOURCE_DIR})
  set_target_properties(${EXE_NAME} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin
    BUILD_RPATH "$ORIGIN/../lib" INSTALL_RPATH "$ORIGIN/../lib")
  install(TARGETS ${EXE_NAME} RUNTIME DESTINATION bin)
  _mtmc_mark(${EXE_NAME})
endfunction()

function(mtmc_plugin)
  _mtmc_parse(PLUGIN mtmc_plugin "" "NAME" "SRCS;DEPS" ${ARGN})
  set(target mtmc_${PLUGIN_NAME}_plugin)
  _mtmc_check_deps(${target} ${PLUGIN_DEPS})
  add_library(${target} MODULE ${PLUGIN_SRCS})
  target_link_libraries(${target} PRIVATE ${PLUGIN_DEPS} mtmc::warnings)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  # No RPATH to the build host's wheels: whoever opens the plug-in has loaded
  # the libtorch of the host's own Python first.
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME mtmc_${PLUGIN_NAME} LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib
    INSTALL_RPATH "" CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  install(TARGETS ${target} LIBRARY DESTINATION lib)
  _mtmc_mark(${target})
endfunction()

function(mtmc_test)
  _mtmc_parse(TEST mtmc_test "" "NAME;TIMEOUT;DATA" "SRCS;DEPS;LABELS;ENVIRONMENT" ${ARGN})
  set(target mtmc_${TEST_NAME}_test)
  _mtmc_check_deps(${target} ${TEST_DEPS})
  if(NOT TEST_LABELS)
    set(TEST_LABELS unit)
  endif()
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 120)
  endif()
  if(MTMC_SANITIZE)
    # What the instrumented code needs more.
    math(EXPR TEST_TIMEOUT "10 * ${TEST_TIMEOUT}")
  endif()
  add_executable(${target} ${TEST_SRCS} ${MTMC_SANITIZER_SOURCES})
  target_link_libraries(${target} PRIVATE ${TEST_DEPS} mtmc::catch2 mtmc::warnings)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${target} PRIVATE MTMC_BINARY_DIR="${PROJECT_BINARY_DIR}/bin")
  if(TEST_DATA)
    target_compile_definitions(${target} PRIVATE
      MTMC_TEST_DATA="${CMAKE_CURRENT_SOURCE_DIR}/${TEST_DATA}")
  endif()
  set_target_properties(${target} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests BUILD_RPATH "$ORIGIN/../lib")
  catch_discover_tests(${target} TEST_PREFIX "${TEST_NAME}:" TEST_LIST ${target}_cases)
  # Properties are set in a file of our own, which ctest reads after the one with
  # the discovered cases: Catch's script loses values that are lists.
  set(environment "MTMC_PYTHON=${MTMC_PYTHON}" ${MTMC_SANITIZER_ENVIRONMENT} ${TEST_ENVIRONMENT})
  set(properties "TIMEOUT ${TEST_TIMEOUT} LABELS [==[${TEST_LABELS}]==] "
      "SKIP_REGULAR_EXPRESSION SKIPPED: "
      "ENVIRONMENT [==[${environment}]==]")
  if("gpu" IN_LIST TEST_LABELS)
    list(APPEND properties " RESOURCE_LOCK gpu0")
  endif()
  list(JOIN properties "" properties)
  set(file ${CMAKE_CURRENT_BINARY_DIR}/${target}_properties.cmake)
  file(WRITE ${file} "foreach(case IN LISTS ${target}_cases)\n"
                     "  set_tests_properties(\"\${case}\" PROPERTIES ${properties})\n"
                     "endforeach()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${file})
  _mtmc_mark(${target})
endfunction()

function(mtmc_fuzz)
  _mtmc_parse(FUZZ mtmc_fuzz "" "NAME;CORPUS" "SRCS;DEPS" ${ARGN})
  set(target mtmc_${FUZZ_NAME}_fuzz)
  _mtmc_check_deps(${target} ${FUZZ_DEPS})
  if(NOT FUZZ_CORPUS)
    message(FATAL_ERROR "${target}: CORPUS names no folder of seed inputs")
  endif()
  set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/${FUZZ_CORPUS})
  add_executable(${target} ${FUZZ_SRCS} ${MTMC_SANITIZER_SOURCES})
  target_link_libraries(${target} PRIVATE ${FUZZ_DEPS} mtmc::warnings)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  set_target_properties(${target} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz OUTPUT_NAME ${FUZZ_NAME})
  if(MTMC_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    # libFuzzer writes what it finds into the first folder.
    set(found ${CMAKE_CURRENT_BINARY_DIR}/${target}_found)
    file(MAKE_DIRECTORY ${found})
    set(run ${target} -runs=20000 -max_total_time=60 -artifact_prefix=${found}/ ${found})
  else()
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/fuzz_driver.cc)
    set(run ${target} --mutations=2000)
  endif()
  add_test(NAME "fuzz: ${FUZZ_NAME}" COMMAND ${run} ${corpus})
  set_tests_properties("fuzz: ${FUZZ_NAME}" PROPERTIES TIMEOUT 120 LABELS unit)
  if(NOT TARGET fuzz_targets)
    add_custom_target(fuzz_targets)
  endif()
  add_dependencies(fuzz_targets ${target})
  # scripts/fuzz finds binary and corpus by this name.
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  file(CREATE_LINK ${corpus} ${PROJECT_BINARY_DIR}/fuzz/${FUZZ_NAME}_corpus SYMBOLIC)
  _mtmc_mark(${target})
endfunction()
