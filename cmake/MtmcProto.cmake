# SPDX-License-Identifier: Apache-2.0
#
#   mtmc_proto(
#     NAME proto                        # static library mtmc_proto, alias mtmc::proto
#     ROOT ${CMAKE_CURRENT_SOURCE_DIR}  # import root of PROTOS
#     PROTOS mtmc/v1/job.proto ...      # ours
#     IMPORTS google/rpc/status.proto   # compiled from MTMC_GOOGLEAPIS_DIR
#     GRPC_PROTOS mtmc/v1/job.proto)    # stubs go to mtmc_proto_grpc, mtmc::proto_grpc
#
# Generated headers are included as "mtmc/v1/job.pb.h" and "mtmc/v1/job.grpc.pb.h".
# A descriptor set with all imports is written to share/mtmc/mtmc.binpb of the
# build folder, for clients that build their classes from descriptors (Python).
#
#   mtmc_wheel_proto(
#     NAME otlp                         # as above: mtmc::otlp and mtmc::otlp_grpc
#     MODULES pkg.foo_pb2               # Python modules of MTMC_PYTHON
#     PROTOS pkg/foo.proto ...          # what the modules and their imports are made from
#     GRPC_PROTOS pkg/foo.proto)
#
# is for protos that come in a wheel, which has their descriptors but not their text.

include_guard(GLOBAL)

function(mtmc_proto)
  cmake_parse_arguments(ARG "" "NAME;ROOT" "PROTOS;IMPORTS;GRPC_PROTOS" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS OR NOT ARG_NAME OR NOT ARG_PROTOS)
    message(FATAL_ERROR "mtmc_proto: NAME and PROTOS are required; not understood: ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  set(out ${PROJECT_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${out} ${PROJECT_BINARY_DIR}/share/mtmc)
  set(paths -I${ARG_ROOT} -I${MTMC_GOOGLEAPIS_DIR})
  set(sources "")
  set(grpc_sources "")
  set(inputs "")
  foreach(proto IN LISTS ARG_PROTOS ARG_IMPORTS)
    if(EXISTS ${ARG_ROOT}/${proto})
      set(input ${ARG_ROOT}/${proto})
    else()
      set(input ${MTMC_GOOGLEAPIS_DIR}/${proto})
    endif()
    string(REGEX REPLACE "\\.proto$" "" stem ${proto})
    add_custom_command(
      OUTPUT ${out}/${stem}.pb.cc ${out}/${stem}.pb.h
      COMMAND ${MTMC_PROTOC} ${paths} --cpp_out=${out} ${proto}
      DEPENDS ${input} COMMENT "Compiling ${proto}" VERBATIM)
    list(APPEND sources ${out}/${stem}.pb.cc)
    list(APPEND inputs ${input})
  endforeach()
  foreach(proto IN LISTS ARG_GRPC_PROTOS)
    string(REGEX REPLACE "\\.proto$" "" stem ${proto})
    add_custom_command(
      OUTPUT ${out}/${stem}.grpc.pb.cc ${out}/${stem}.grpc.pb.h
      COMMAND ${MTMC_PROTOC} ${paths} --grpc_out=${out}
              --plugin=protoc-gen-grpc=${MTMC_GRPC_PLUGIN} ${proto}
      DEPENDS ${ARG_ROOT}/${proto} COMMENT "Compiling services of ${proto}" VERBATIM)
    list(APPEND grpc_sources ${out}/${stem}.grpc.pb.cc)
  endforeach()
  set(descriptors ${PROJECT_BINARY_DIR}/share/mtmc/mtmc.binpb)
  add_custom_command(
    OUTPUT ${descriptors}
    COMMAND ${MTMC_PROTOC} ${paths} --include_imports --descriptor_set_out=${descriptors} ${ARG_PROTOS}
    DEPENDS ${inputs} COMMENT "Writing descriptor set" VERBATIM)
  add_custom_target(mtmc_${ARG_NAME}_descriptors ALL DEPENDS ${descriptors})
  install(FILES ${descriptors} DESTINATION share/mtmc)

  _mtmc_proto_libraries(${ARG_NAME} "${sources}" "${grpc_sources}")
endfunction()

function(mtmc_wheel_proto)
  cmake_parse_arguments(ARG "" "NAME" "MODULES;PROTOS;GRPC_PROTOS" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS OR NOT ARG_NAME OR NOT ARG_MODULES OR NOT ARG_PROTOS)
    message(FATAL_ERROR "mtmc_wheel_proto: NAME, MODULES and PROTOS are required; not understood: ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  set(out ${PROJECT_BINARY_DIR}/generated)
  set(descriptors ${PROJECT_BINARY_DIR}/generated/${ARG_NAME}.binpb)
  set(script ${PROJECT_SOURCE_DIR}/cmake/wheel_descriptors.py)
  add_custom_command(
    OUTPUT ${descriptors}
    COMMAND ${MTMC_PYTHON} -B ${script} ${descriptors} ${ARG_MODULES}
    DEPENDS ${script} ${PROJECT_SOURCE_DIR}/scripts/requirements.txt
    COMMENT "Reading descriptors of ${ARG_NAME}" VERBATIM)
  set(sources "")
  set(grpc_sources "")
  set(outputs "")
  foreach(proto IN LISTS ARG_PROTOS)
    string(REGEX REPLACE "\\.proto$" "" stem ${proto})
    list(APPEND sources ${out}/${stem}.pb.cc)
    list(APPEND outputs ${out}/${stem}.pb.cc ${out}/${stem}.pb.h)
  endforeach()
  add_custom_command(
    OUTPUT ${outputs}
    COMMAND ${MTMC_PROTOC} --descriptor_set_in=${descriptors} --cpp_out=${out} ${ARG_PROTOS}
    DEPENDS ${descriptors} COMMENT "Compiling protos of ${ARG_NAME}" VERBATIM)
  foreach(proto IN LISTS ARG_GRPC_PROTOS)
    string(REGEX REPLACE "\\.proto$" "" stem ${proto})
    add_custom_command(
      OUTPUT ${out}/${stem}.grpc.pb.cc ${out}/${stem}.grpc.pb.h
      COMMAND ${MTMC_PROTOC} --descriptor_set_in=${descriptors} --grpc_out=${out}
              --plugin=protoc-gen-grpc=${MTMC_GRPC_PLUGIN} ${proto}
      DEPENDS ${descriptors} COMMENT "Compiling services of ${proto}" VERBATIM)
    list(APPEND grpc_sources ${out}/${stem}.grpc.pb.cc)
  endforeach()
  _mtmc_proto_libraries(${ARG_NAME} "${sources}" "${grpc_sources}")
endfunction()

# The two libraries of generated sources.
function(_mtmc_proto_libraries name sources grpc_sources)
  add_library(mtmc_${name} STATIC ${sources})
  target_include_directories(mtmc_${name} SYSTEM PUBLIC ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(mtmc_${name} PUBLIC mtmc::protobuf)
  add_library(mtmc_${name}_grpc STATIC ${grpc_sources})
  target_link_libraries(mtmc_${name}_grpc PUBLIC mtmc_${name} mtmc::grpc)
  foreach(target mtmc_${name} mtmc_${name}_grpc)
    string(REGEX REPLACE "^mtmc_" "" alias ${target})
    add_library(mtmc::${alias} ALIAS ${target})
    set_target_properties(${target} PROPERTIES MTMC_LAYER 0)
  endforeach()
endfunction()
