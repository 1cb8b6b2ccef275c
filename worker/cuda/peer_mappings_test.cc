// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/peer_mappings.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace mtmc::worker {
namespace {

// What the driver was asked, newest last. An address is the first byte of its handle.
std::vector<std::string>& Asked() {
  static auto& asked = *new std::vector<std::string>;
  return asked;
}

CUresult Open(CUdeviceptr* address, CUipcMemHandle handle, unsigned) {
  if (handle.reserved[0] == '!') return CUDA_ERROR_INVALID_VALUE;
  *address = static_cast<CUdeviceptr>(handle.reserved[0]);
  Asked().push_back(std::string("open ") + handle.reserved[0]);
  return CUDA_SUCCESS;
}

CUresult Close(CUdeviceptr address) {
  Asked().push_back(std::string("close ") + static_cast<char>(address));
  return address == 'x' ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult NameOf(CUresult, const char** text) {
  *text = "NAME";
  return CUDA_SUCCESS;
}

CudaApi MakeApi() {
  Asked().clear();
  CudaApi api;
  api.cuIpcOpenMemHandle = Open;
  api.cuIpcCloseMemHandle = Close;
  api.cuGetErrorName = NameOf;
  api.cuGetErrorString = NameOf;
  return api;
}

std::string Handle(char first) { return std::string(sizeof(CUipcMemHandle), first); }

TEST_CASE("An allocation is mapped once, until all are closed", "[cuda]") {
  const CudaApi api = MakeApi();
  PeerMappings mappings(api);
  for (const char which : {'a', 'a', 'b', 'a'}) {
    const Outcome<CUdeviceptr> address = mappings.Open(Handle(which));
    REQUIRE(address.ok());
    CHECK(*address == static_cast<CUdeviceptr>(which));
  }
  CHECK(Asked() == std::vector<std::string>{"open a", "open b"});

  CHECK_FALSE(mappings.CloseAll());
  CHECK_FALSE(mappings.CloseAll());
  // The handle may be that of another allocation now.
  CHECK(mappings.Open(Handle('a')).ok());
  CHECK(Asked() == std::vector<std::string>{"open a", "open b", "close a", "close b", "open a"});
}

TEST_CASE("What is mapped at the end is closed", "[cuda]") {
  const CudaApi api = MakeApi();
  { CHECK(PeerMappings(api).Open(Handle('a')).ok()); }
  CHECK(Asked() == std::vector<std::string>{"open a", "close a"});
}

TEST_CASE("A handle that cannot be mapped is a failure, and nothing stays of it", "[cuda]") {
  const CudaApi api = MakeApi();
  PeerMappings mappings(api);
  CHECK_FALSE(mappings.Open("short").ok());
  CHECK_FALSE(mappings.Open(Handle('!')).ok());
  CHECK_FALSE(mappings.CloseAll());
  CHECK(Asked().empty());
}

TEST_CASE("One that cannot be closed is told, and the others are closed", "[cuda]") {
  const CudaApi api = MakeApi();
  PeerMappings mappings(api);
  for (const char which : {'x', 'a'}) CHECK(mappings.Open(Handle(which)).ok());
  CHECK(mappings.CloseAll());
  CHECK(Asked().back() == "close a");
}

}  // namespace
}  // namespace mtmc::worker
