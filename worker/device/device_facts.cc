// SPDX-License-Identifier: Apache-2.0
#include "worker/device/device_facts.h"

#include "mtmc/v1/device.pb.h"

namespace mtmc::worker {
namespace {

v1::Dialect ToProto(kernel::Dialect dialect) {
  switch (dialect) {
    case kernel::Dialect::kOpenCl:
      return v1::DIALECT_OPENCL;
    case kernel::Dialect::kCuda:
      return v1::DIALECT_CUDA;
    case kernel::Dialect::kTriton:
      return v1::DIALECT_TRITON;
  }
  return v1::DIALECT_UNSPECIFIED;
}

}  // namespace

v1::DeviceFacts ToProto(const DeviceFacts& facts) {
  v1::DeviceFacts proto;
  proto.set_product(facts.product);
  proto.set_uuid(facts.uuid);
  for (kernel::Dialect dialect : facts.dialects) proto.add_dialects(ToProto(dialect));
  proto.set_compute_capability(facts.compute_capability);
  proto.set_compute_units(facts.compute_units);
  proto.set_memory_bytes(facts.memory_bytes);
  proto.set_cache_bytes(facts.cache_bytes);
  proto.set_shared_memory_per_block_bytes(facts.shared_memory_per_block_bytes);
  proto.set_max_threads_per_block(facts.max_threads_per_block);
  proto.set_warp_size(facts.warp_size);
  proto.set_memory_bandwidth_bytes_per_second(facts.memory_bandwidth_bytes_per_second);
  proto.set_fp32_flops_per_second(facts.fp32_flops_per_second);
  proto.set_tf32_flops_per_second(facts.tf32_flops_per_second);
  proto.set_driver_version(facts.driver_version);
  proto.set_toolchain_version(facts.toolchain_version);
  proto.set_has_library_calls(facts.has_library_calls);
  proto.set_vector_bytes(facts.vector_bytes);
  return proto;
}

}  // namespace mtmc::worker
