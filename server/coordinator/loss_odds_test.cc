// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/loss_odds.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace mtmc::coordinator {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'000'000);

// A fleet of ten that loses a worker every `interval` for half an hour.
LossOdds After(absl::Duration interval) {
  LossOdds odds;
  absl::Time last_loss = kStart;
  for (absl::Time now = kStart; now < kStart + absl::Minutes(30); now += absl::Seconds(1)) {
    odds.Advance(now, 10);
    if (now - last_loss < interval) continue;
    odds.CountLoss();
    last_loss = now;
  }
  return odds;
}

std::vector<RunLoss> Losses(int count, absl::Duration run) {
  return std::vector<RunLoss>(static_cast<size_t>(count),
                              {.time = kStart + absl::Minutes(30) - absl::Seconds(1), .run = run});
}

// As if the losses in question had been counted, too.
double OddsOf(LossOdds odds, const std::vector<RunLoss>& losses) {
  for (size_t i = 0; i < losses.size(); ++i) odds.CountLoss();
  return odds.ByChance(losses);
}

TEST_CASE("LossOdds finds few losses telling in a quiet fleet", "[coordinator]") {
  CHECK(OddsOf(After(absl::Hours(1)), Losses(3, absl::Seconds(1))) < 1e-6);
}

TEST_CASE("LossOdds finds many losses likely in a fleet that is killed all the time",
          "[coordinator]") {
  // Each worker lives for ten seconds.
  const LossOdds odds = After(absl::Seconds(1));

  // By its definition (1 - exp(-0.1 * 5))^6 = 0.0037.
  CHECK(std::abs(OddsOf(odds, Losses(6, absl::Seconds(5))) - 0.0037) < 0.0004);
}

TEST_CASE("LossOdds finds a loss of a long run more likely", "[coordinator]") {
  const LossOdds odds = After(absl::Minutes(1));

  CHECK(OddsOf(odds, Losses(3, absl::Minutes(5))) > OddsOf(odds, Losses(3, absl::Seconds(5))));
}

TEST_CASE("LossOdds judges losses without themselves", "[coordinator]") {
  const LossOdds quiet = After(absl::Hours(1));

  CHECK(OddsOf(quiet, Losses(10, absl::Seconds(1))) < 1e-20);
}

TEST_CASE("LossOdds forgets a bad hour", "[coordinator]") {
  LossOdds odds = After(absl::Seconds(1));
  const double bad = odds.ByChance(Losses(3, absl::Seconds(1)));
  odds.Advance(kStart + absl::Hours(3), 10);

  CHECK(odds.ByChance({{.time = kStart + absl::Hours(3), .run = absl::Seconds(1)},
                       {.time = kStart + absl::Hours(3), .run = absl::Seconds(1)},
                       {.time = kStart + absl::Hours(3), .run = absl::Seconds(1)}}) < bad / 1000);
}

}  // namespace
}  // namespace mtmc::coordinator
