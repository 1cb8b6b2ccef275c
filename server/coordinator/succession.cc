// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/succession.h"

#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace mtmc::coordinator {

Succession::Succession(const Options& options, store::OwnerStore& store)
    : options_(options), store_(store) {
  MTMC_CHECK(!options.name.empty());
}

absl::StatusOr<Succession::View> Succession::Step(absl::Duration now) {
  const absl::StatusOr<store::OwnerRecord> owner = store_.ReadOwner();
  if (!owner.ok()) {
    seen_.reset();
    return owner.status();
  }
  store::OwnerRecord next = *owner;
  if (owner->name == options_.name) {
    // Perhaps by a Step whose answer was lost.
    ++next.beat;
  } else if (IsSilent(*owner, now)) {
    next = {.epoch = owner->epoch + 1, .name = options_.name, .address = options_.address};
  } else {
    return View{.owner = *owner};
  }
  const absl::Status status = store_.ReplaceOwner(*owner, next);
  // Another one was faster; the next look shows who.
  if (absl::IsAborted(status)) return View{.owner = *owner};
  MTMC_RETURN_IF_ERROR(status);
  return View{.owner = next, .is_mine = true};
}

bool Succession::IsSilent(const store::OwnerRecord& owner, absl::Duration now) {
  if (owner.name.empty()) return true;
  if (seen_ != owner) {
    seen_ = owner;
    since_ = now;
  }
  return now - since_ >= options_.patience;
}

absl::Status Succession::Resign() {
  MTMC_ASSIGN_OR_RETURN(const store::OwnerRecord owner, store_.ReadOwner());
  if (owner.name != options_.name) return absl::OkStatus();
  return store_.ReplaceOwner(owner, {.epoch = owner.epoch});
}

}  // namespace mtmc::coordinator
