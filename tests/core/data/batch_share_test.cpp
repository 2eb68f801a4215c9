#include "muster/core/data/detail/batch_share.h"

#include <doctest/doctest.h>

#include <vector>

namespace muster::detail {
namespace {

/// The share that is told after the last of these batches was taken.
std::optional<BatchShare> told(BatchShareGuess& guess, const std::vector<std::int64_t>& batches) {
  std::optional<BatchShare> share;
  for (const std::int64_t batch : batches) share = guess.note(batch);
  return share;
}

TEST_CASE("two equal distances between batches tell the share; distance 1 is all of them") {
  struct Row {
    std::vector<std::int64_t> batches;
    std::optional<BatchShare> share;
  };
  constexpr std::int64_t kLongest = BatchShareGuess::kLongestPeriod;
  for (const auto& [batches, share] : {
           Row{{0}, {}},
           Row{{0, 3}, {}},
           Row{{0, 3, 6}, BatchShare{3, 0}},
           Row{{2, 5, 8}, BatchShare{3, 2}},
           Row{{1, 3, 5, 7}, BatchShare{2, 1}},
           Row{{0, 1, 2, 3}, {}},
           Row{{0, 3, 5}, {}},
           Row{{0, 3, 5, 7}, BatchShare{2, 1}},
           Row{{4, 4 + kLongest, 4 + 2 * kLongest}, BatchShare{static_cast<std::int32_t>(kLongest), 4}},
           Row{{0, kLongest + 1, 2 * (kLongest + 1)}, {}},
       }) {
    CAPTURE(batches.size());
    CAPTURE(batches.back());
    BatchShareGuess guess;
    guess.begin();
    CHECK(told(guess, batches) == share);
  }
}

TEST_CASE("no share is told after a wrong guess, until the next epoch begins") {
  BatchShareGuess guess;
  guess.begin();
  guess.giveUp();
  CHECK_FALSE(told(guess, {0, 2, 4, 6}).has_value());
  guess.begin();
  CHECK(told(guess, {1, 3, 5}) == BatchShare{2, 1});
}

TEST_CASE("the distance across an epoch's begin is none") {
  BatchShareGuess guess;
  guess.begin();
  CHECK_FALSE(told(guess, {0, 2}).has_value());
  guess.begin();
  CHECK_FALSE(told(guess, {4, 6}).has_value());
  CHECK(told(guess, {8}) == BatchShare{2, 0});
}

TEST_CASE("a share has the batches of its phase") {
  constexpr BatchShare all, odd{2, 1};
  for (std::int64_t batch = 0; batch < 6; ++batch) {
    CHECK(all.has(batch));
    CHECK(odd.has(batch) == (batch % 2 == 1));
  }
}

}  // namespace
}  // namespace muster::detail
