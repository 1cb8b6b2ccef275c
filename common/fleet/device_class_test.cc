// SPDX-License-Identifier: Apache-2.0
#include "common/fleet/device_class.h"

#include <catch2/catch.hpp>

namespace mtmc::fleet {
namespace {

v1::DeviceFacts Device() {
  v1::DeviceFacts device;
  device.set_product("H200");
  device.set_driver_version("580");
  device.set_toolchain_version("13.0");
  return device;
}

TEST_CASE("A device's class is its product, driver and toolchain", "[fleet]") {
  const auto change = GENERATE(
      as<void (*)(v1::DeviceFacts&)>(), [](v1::DeviceFacts& device) { device.set_product("H100"); },
      [](v1::DeviceFacts& device) { device.set_driver_version("581"); },
      [](v1::DeviceFacts& device) { device.set_toolchain_version("13.1"); });
  v1::DeviceFacts other = Device();
  change(other);
  CHECK(DeviceClass(other) != DeviceClass(Device()));
  CHECK_FALSE(IsSameClass(other, Device()));
}

TEST_CASE("A device's class is described by the parts that it has", "[fleet]") {
  v1::DeviceFacts device = Device();
  CHECK(DescribeDeviceClass(device) == "H200, 580, 13.0");
  device.clear_driver_version();
  CHECK(DescribeDeviceClass(device) == "H200, 13.0");
}

TEST_CASE("What results do not depend on is no part of a device's class", "[fleet]") {
  v1::DeviceFacts other = Device();
  other.set_memory_bytes(1);
  other.add_dialects(v1::DIALECT_OPENCL);
  CHECK(DeviceClass(other) == DeviceClass(Device()));
  CHECK(IsSameClass(other, Device()));
}

TEST_CASE("Parts of a device that run together are told apart", "[fleet]") {
  v1::DeviceFacts one;
  one.set_product("ab");
  v1::DeviceFacts two;
  two.set_product("a");
  two.set_driver_version("b");
  CHECK(DeviceClass(one) != DeviceClass(two));
  CHECK_FALSE(IsSameClass(one, two));
}

}  // namespace
}  // namespace mtmc::fleet
