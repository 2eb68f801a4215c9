#include "muster/core/listeners/detail/stopping_record.h"

#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <vector>

#include "tests/support/thrown.h"

namespace muster {
namespace {

using detail::StoppingRecord;
using test::thrown;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::string refusal(const std::array<double, 6>& numbers) {
  return thrown<SavedStateError>(
      [&] { StoppingRecord::read(numbersAs(std::span<const double>(numbers)), "field", 10); });
}

TEST_CASE("a record is read as it was written") {
  Tensor numbers = StoppingRecord::emptyNumbers();
  const StoppingRecord written{
      .bestEpoch = 7, .bestValue = -0.5, .bestScore = 2, .improvedEpoch = 5, .improvedValue = 0.25};
  written.write(numbers);
  StoppingRecord::writeSeconds(12.5, numbers);
  const auto read = StoppingRecord::read(numbers, "field", 7);
  CHECK(read.bestEpoch == 7);
  CHECK(read.bestValue == -0.5);
  CHECK(read.bestScore == 2);
  CHECK(read.improvedEpoch == 5);
  CHECK(read.improvedValue == 0.25);
  CHECK(read.seconds == 12.5);
  CHECK(StoppingRecord::read(StoppingRecord::emptyNumbers(), "field", 0).bestEpoch == 0);
}

TEST_CASE("impossible numbers are refused, each by its name") {
  struct Row {
    std::size_t number;
    double value;
    const char* what;
  };
  for (const Row& row :
       {Row{0, 11, "the best epoch 11"}, Row{0, -1, "the best epoch -1"}, Row{0, kNan, "the best epoch nan"},
        Row{3, 11, "the last improvement in epoch 11"}, Row{3, 0, "the last improvement in epoch 0"},
        Row{1, kNan, "the best value nan"}, Row{2, kNan, "the best score nan"},
        Row{4, kNan, "the last improvement to nan"}, Row{5, -1, "seconds -1"},
        Row{5, 2e9, "seconds 2000000000"}, Row{5, kNan, "seconds nan"}}) {
    CAPTURE(row.what);
    std::array<double, 6> numbers{5, 0.5, 1, 4, 0.5, 3};
    CHECK(refusal(numbers).empty());
    numbers[row.number] = row.value;
    CHECK(refusal(numbers) == std::string("field has ") + row.what + ", which is impossible");
  }
}

TEST_CASE("numbers of another type or count are refused") {
  const std::array<double, 5> five{};
  const std::array<std::int64_t, 6> whole{};
  CHECK(thrown<SavedStateError>([&] {
          StoppingRecord::read(numbersAs(std::span<const double>(five)), "field", 1);
        }) == "field is float64 [5] on cpu, which is impossible");
  CHECK(thrown<SavedStateError>([&] {
          StoppingRecord::read(numbersAs(std::span<const std::int64_t>(whole)), "field", 1);
        }) == "field is int64 [6] on cpu, which is impossible");
}

}  // namespace
}  // namespace muster
