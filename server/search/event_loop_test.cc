// SPDX-License-Identifier: Apache-2.0
#include "server/search/event_loop.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/synchronization/notification.h"

namespace mtmc::search {

TEST_CASE("EventLoop runs tasks in their order, and those that come first before the others",
          "[search]") {
  EventLoop loop;
  std::string order;
  absl::Notification is_held, is_released, is_done;
  // The loop is at work, and much is queued behind.
  loop.Post([&] {
    is_held.Notify();
    is_released.WaitForNotification();
  });
  loop.Start();
  is_held.WaitForNotification();
  for (const char* name : {"a", "b", "c"}) loop.Post([&order, name] { order += name; });
  for (const char* name : {"1", "2"}) loop.PostFirst([&order, name] { order += name; });
  loop.Post([&is_done] { is_done.Notify(); });
  is_released.Notify();
  is_done.WaitForNotification();

  CHECK(order == "12abc");
}

TEST_CASE("EventLoop with nothing else to do runs what comes first at once", "[search]") {
  EventLoop loop;
  loop.Start();
  absl::Notification is_done;
  loop.PostFirst([&is_done] { is_done.Notify(); });

  CHECK(is_done.WaitForNotificationWithTimeout(absl::Seconds(20)));
}

}  // namespace mtmc::search
