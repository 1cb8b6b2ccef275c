# SPDX-License-Identifier: Apache-2.0
#
# What comes from the Python environment: the protos of googleapis and
# OpenTelemetry, libtorch and the CUDA headers, all out of its wheels. MTMC_PYTHON
# names the interpreter; the default is the .venv that scripts/setup makes. Nothing
# is imported here: only the places of the packages are asked for.
#
# find_package(Torch) is not used because it wants a CUDA toolkit.

include_guard(GLOBAL)

if(NOT MTMC_PYTHON)
  if(EXISTS ${PROJECT_SOURCE_DIR}/.venv/bin/python)
    set(MTMC_PYTHON ${PROJECT_SOURCE_DIR}/.venv/bin/python CACHE FILEPATH "Python with PyTorch" FORCE)
  else()
    message(FATAL_ERROR "no ${PROJECT_SOURCE_DIR}/.venv; run scripts/setup, or pass -DMTMC_PYTHON=<python>")
  endif()
endif()

# Sets `out` to the folder of a Python package, or to "" when it is absent.
function(_mtmc_python_package out package)
  execute_process(
    COMMAND ${MTMC_PYTHON} -c
      "import importlib.util as u; s = u.find_spec('${package}'); print(list(s.submodule_search_locations)[0] if s else '')"
    OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(${out} "${folder}" PARENT_SCOPE)
endfunction()

_mtmc_python_package(_mtmc_google_rpc google.rpc)
if(NOT _mtmc_google_rpc)
  message(FATAL_ERROR "${MTMC_PYTHON} has no googleapis-common-protos; run scripts/setup")
endif()
get_filename_component(MTMC_GOOGLEAPIS_DIR ${_mtmc_google_rpc}/../.. ABSOLUTE)

_mtmc_python_package(_mtmc_otlp opentelemetry.proto.trace)
if(NOT _mtmc_otlp)
  message(FATAL_ERROR "${MTMC_PYTHON} has no opentelemetry-proto; run scripts/setup")
endif()

_mtmc_python_package(MTMC_CUDA_DIR nvidia.cu13)
if(MTMC_CUDA_DIR AND EXISTS ${MTMC_CUDA_DIR}/include/cuda.h)
  add_library(mtmc_third_party_cuda_headers INTERFACE)
  target_include_directories(mtmc_third_party_cuda_headers SYSTEM INTERFACE ${MTMC_CUDA_DIR}/include)
  add_library(mtmc::cuda_headers ALIAS mtmc_third_party_cuda_headers)
else()
  message(FATAL_ERROR "${MTMC_PYTHON} has no CUDA headers (nvidia/cu13/include/cuda.h); run scripts/setup")
endif()

option(MTMC_WITH_TORCH "Build the parts that need libtorch" ON)
if(MTMC_WITH_TORCH)
  _mtmc_python_package(MTMC_TORCH_DIR torch)
  if(NOT EXISTS ${MTMC_TORCH_DIR}/lib/libtorch_cpu.so)
    message(FATAL_ERROR "${MTMC_PYTHON} has no PyTorch; run scripts/setup, or pass -DMTMC_WITH_TORCH=OFF")
  endif()
  foreach(library c10 torch_cpu torch c10_cuda torch_cuda)
    add_library(mtmc_torch_${library} SHARED IMPORTED)
    set_target_properties(mtmc_torch_${library} PROPERTIES
      IMPORTED_LOCATION ${MTMC_TORCH_DIR}/lib/lib${library}.so)
  endforeach()

  # Link it PRIVATE, from the adapter alone: its include folder carries an old
  # google/protobuf, and no source may see both that and ours.
  add_library(mtmc_third_party_libtorch_cpu INTERFACE)
  target_include_directories(mtmc_third_party_libtorch_cpu SYSTEM INTERFACE
    ${MTMC_TORCH_DIR}/include ${MTMC_TORCH_DIR}/include/torch/csrc/api/include)
  target_compile_definitions(mtmc_third_party_libtorch_cpu INTERFACE _GLIBCXX_USE_CXX11_ABI=1)
  target_link_libraries(mtmc_third_party_libtorch_cpu INTERFACE mtmc_torch_torch_cpu mtmc_torch_c10)
  # libtorch_cpu.so needs nvidia libraries that its own RPATH finds at run time.
  target_link_options(mtmc_third_party_libtorch_cpu INTERFACE "LINKER:--allow-shlib-undefined")
  add_library(mtmc::libtorch_cpu ALIAS mtmc_third_party_libtorch_cpu)

  # Static initializers in libtorch_cuda register the CUDA kernels; nothing refers
  # to them, so the linker must be told to keep the library.
  add_library(mtmc_third_party_libtorch_cuda INTERFACE)
  target_include_directories(mtmc_third_party_libtorch_cuda SYSTEM INTERFACE ${MTMC_CUDA_DIR}/include)
  target_link_options(mtmc_third_party_libtorch_cuda INTERFACE "LINKER:--no-as-needed")
  target_link_libraries(mtmc_third_party_libtorch_cuda INTERFACE
    mtmc_third_party_libtorch_cpu mtmc_torch_torch_cuda mtmc_torch_c10_cuda)
  add_library(mtmc::libtorch_cuda ALIAS mtmc_third_party_libtorch_cuda)
endif()
