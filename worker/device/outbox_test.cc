// SPDX-License-Identifier: Apache-2.0
#include "worker/device/outbox.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::worker {
namespace {

Failure NotHere() { return {.kind = Failure::Kind::kCheck, .message = "not in this test"}; }

// Memory of the host that passes for a device's; its handle is a name.
class NamedBuffer final : public Buffer {
 public:
  NamedBuffer(std::byte* address, int64_t bytes, std::string name)
      : Buffer(bytes), address_(address), name_(std::move(name)) {}

  void* address() const override { return address_; }

  MaybeFailure Fill(uint8_t) override { return NotHere(); }

  MaybeFailure Upload(std::span<const std::byte>) override { return NotHere(); }

  MaybeFailure Download(std::span<std::byte>) const override { return NotHere(); }

  MaybeFailure CopyFrom(const PeerMemory&) override { return NotHere(); }

  MaybeFailure CopyFrom(const Buffer& source) override {
    CHECK(source.bytes() == bytes());
    std::copy_n(static_cast<const std::byte*>(source.address()), bytes(), address_);
    return std::nullopt;
  }

  std::optional<PeerMemory> Share() const override {
    if (name_.empty()) return std::nullopt;
    return PeerMemory{.handle = name_, .offset_bytes = kOffset};
  }

  static constexpr int64_t kOffset = 64;

 private:
  std::byte* const address_;
  const std::string name_;
};

// Hands out memory that is named by the order of the requests.
class NamingDevice final : public Device {
 public:
  explicit NamingDevice(bool shares = true) : shares_(shares) {}

  const DeviceFacts& facts() const override { return facts_; }

  Outcome<std::unique_ptr<Buffer>> Allocate(int64_t bytes) override {
    memory_.emplace_back(static_cast<size_t>(bytes));
    const std::string name = shares_ ? std::to_string(memory_.size()) : "";
    return std::unique_ptr<Buffer>(
        std::make_unique<NamedBuffer>(memory_.back().data(), bytes, name));
  }

  Outcome<std::unique_ptr<Buffer>> Wrap(void* address, int64_t bytes) override {
    return std::unique_ptr<Buffer>(
        std::make_unique<NamedBuffer>(static_cast<std::byte*>(address), bytes, ""));
  }

  MaybeFailure Synchronize() override {
    ++num_waits_;
    return std::nullopt;
  }

  MaybeFailure Randomize(std::span<const BufferFill>, uint64_t) override { return NotHere(); }

  MaybeFailure Scan(std::span<BufferScan>) override { return NotHere(); }

  Outcome<std::unique_ptr<Module>> Load(std::string_view) override { return NotHere(); }

  MaybeFailure Enqueue(const LaunchCommand&) override { return NotHere(); }

  Outcome<std::unique_ptr<Graph>> Capture(const Body&) override { return NotHere(); }

  Outcome<TimedSample> Time(const Body&, bool) override { return NotHere(); }

  MaybeFailure Scrub() override { return NotHere(); }

  MaybeFailure RunUnderLoad(std::span<const Body>) override { return NotHere(); }

  Outcome<std::vector<StepActivity>> Profile(const std::vector<Body>&) override {
    return NotHere();
  }

  std::string profile_source() const override { return "none"; }

  // What lies at a place.
  const std::byte* At(const PeerMemory& place) const {
    return memory_.at(std::stoul(place.handle) - 1).data() + place.offset_bytes -
           NamedBuffer::kOffset;
  }

  size_t num_allocations() const { return memory_.size(); }

  int num_waits() const { return num_waits_; }

 private:
  const bool shares_;
  const DeviceFacts facts_;
  std::vector<std::vector<std::byte>> memory_;
  int num_waits_ = 0;
};

// A buffer of that many bytes, all of one value.
class Filled {
 public:
  Filled(size_t bytes, int value, std::string name = "")
      : content_(bytes, std::byte(value)),
        buffer_(content_.data(), static_cast<int64_t>(bytes), std::move(name)) {}

  const Buffer* buffer() const { return &buffer_; }

  bool IsAt(const std::byte* place) const {
    return std::equal(content_.begin(), content_.end(), place);
  }

 private:
  std::vector<std::byte> content_;
  NamedBuffer buffer_;
};

TEST_CASE("Small buffers are read from one allocation, others where they are", "[device]") {
  NamingDevice device;
  Outbox outbox(device);
  const Filled first(12, 1);
  const Filled large(Outbox::kSmallBytes + 1, 2, "large");
  const Filled nothing(0, 0);
  const Filled last(Outbox::kSmallBytes, 3);

  const auto places =
      outbox.Share(std::vector{first.buffer(), large.buffer(), nothing.buffer(), last.buffer()});

  REQUIRE(places.ok());
  for (const auto& place : *places) REQUIRE(place);
  CHECK(first.IsAt(device.At(*(*places)[0])));
  CHECK((*places)[1]->handle == "large");
  CHECK(last.IsAt(device.At(*(*places)[3])));
  CHECK((*places)[0]->handle == (*places)[3]->handle);
  CHECK((*places)[3]->offset_bytes % 64 == 0);
  CHECK(device.num_allocations() == 1);
  CHECK(device.num_waits() == 1);
}

TEST_CASE("What was shared stays until the call after the next", "[device]") {
  NamingDevice device;
  Outbox outbox(device);
  std::vector<PeerMemory> places;
  for (int value = 1; value <= 6; ++value) {
    const Filled buffer(1000, value);
    const auto shared = outbox.Share(std::vector{buffer.buffer()});
    REQUIRE(shared.ok());
    places.push_back(*(*shared)[0]);
    CHECK(buffer.IsAt(device.At(places.back())));
    if (value > 1) CHECK(Filled(1000, value - 1).IsAt(device.At(places[places.size() - 2])));
  }
  CHECK(device.num_allocations() == 2);
}

TEST_CASE("Without shared memory no buffer has a place", "[device]") {
  NamingDevice device(/*shares=*/false);
  Outbox outbox(device);
  const Filled buffer(8, 1);

  const auto places = outbox.Share(std::vector{buffer.buffer()});

  REQUIRE(places.ok());
  CHECK_FALSE((*places)[0]);
}

TEST_CASE("Nothing to share takes no memory", "[device]") {
  NamingDevice device;
  Outbox outbox(device);

  CHECK(outbox.Share({})->empty());

  CHECK(device.num_allocations() == 0);
  CHECK(device.num_waits() == 0);
}

}  // namespace
}  // namespace mtmc::worker
