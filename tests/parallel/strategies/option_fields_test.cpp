#include "muster/parallel/strategies/option_fields.h"

#include "muster/parallel/strategies/averaging.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "muster/parallel/strategies/saved_numbers.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::detail;
using muster::test::thrown;

namespace {

constexpr std::int64_t kCounts = std::int64_t{1} << 60;

std::string countRefusal(double number) {
  return thrown<SavedStateError>([&] { requireCount("arrived", number, "rounds"); });
}

}  // namespace

TEST_CASE("a period is between 1 and 2^40 iterations") {
  CHECK_NOTHROW(requireIterations("every", 1));
  CHECK_NOTHROW(requireIterations("every", std::int64_t{1} << 40));
  for (const std::int64_t wrong : {std::int64_t{0}, std::int64_t{-1}, (std::int64_t{1} << 40) + 1})
    CHECK_REFUSED(requireIterations("every", wrong),
                  fmt::format("every must be between 1 and 1099511627776, got {}", wrong));
}

TEST_CASE("numbers of a damaged checkpoint are refused by the block's name") {
  for (const double good : {0.0, 1.0, static_cast<double>(kCounts) - 128}) CHECK(countRefusal(good) == "");
  CHECK(countRefusal(0.5) == "strategy state: \"arrived\" has 0.5 rounds, which is impossible");
  CHECK(countRefusal(-1) == "strategy state: \"arrived\" has -1 rounds, which is impossible");
  for (const double bad :
       {std::nan(""), std::numeric_limits<double>::infinity(), static_cast<double>(kCounts)})
    CHECK(countRefusal(bad) != "");
  CHECK_NOTHROW(requireNotNegative("sent", 0.5, "as a weight"));
  CHECK(thrown<SavedStateError>([] { requireNotNegative("sent", -0.5, "as a weight"); }) ==
        "strategy state: \"sent\" has -0.5 as a weight, which is impossible");
  CHECK(isCounted(kCounts - 1));
  CHECK_FALSE(isCounted(kCounts));
}

TEST_CASE("options of a text replace those of a strategy, and unknown words are named with the nearest") {
  AnyStrategy strategy = Averaging{};
  setOptions(strategy, "every=7,updaterState=reset");
  CHECK(strategy.as<Averaging>()->frequency == 7);
  CHECK((strategy.as<Averaging>()->updaterState == UpdaterState::Reset));
  setOptions(strategy, "");
  CHECK(strategy.as<Averaging>()->frequency == 7);
  CHECK(thrown<InvalidArgument>([&] {
          setOptions(strategy, "evry=3");
        }).starts_with("there is no option \"evry\"; the nearest is every, of every, period, "));
  CHECK_REFUSED(refuseUnknown("codec", "int", {"bf16", "int8"}),
                "there is no codec \"int\"; the nearest is int8, of bf16, int8");
  CHECK(orList({"keep"}) == "keep");
  CHECK(orList({"average", "keep", "reset"}) == "average, keep or reset");
}
