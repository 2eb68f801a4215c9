#include "muster/core/listeners/detail/stopping_record.h"

#include "tests/support/test.h"

namespace muster::test {
namespace {

using detail::StoppingRecord;

template <typename T>
std::string refusal(const std::vector<T>& numbers) {
  return thrown<SavedStateError>(
      [&] { StoppingRecord::read(numbersAs(std::span<const T>(numbers)), "field", 10); });
}

TEST_CASE("a record is read as it was written") {
  Tensor numbers = StoppingRecord::emptyNumbers();
  const StoppingRecord written{
      .bestEpoch = 7, .bestValue = -0.5, .bestScore = 2, .improvedEpoch = 5, .improvedValue = 0.25};
  written.write(numbers);
  StoppingRecord::writeSeconds(12.5, numbers);
  const auto read = StoppingRecord::read(numbers, "field", 7);
  CHECK(textOf(read.bestEpoch, read.bestValue, read.bestScore, read.improvedEpoch, read.improvedValue,
               read.seconds) == "7 -0.5 2 5 0.25 12.5");
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
    std::vector<double> numbers{5, 0.5, 1, 4, 0.5, 3};
    CHECK(refusal(numbers).empty());
    numbers[row.number] = row.value;
    CHECK(refusal(numbers) == std::string("field has ") + row.what + ", which is impossible");
  }
}

TEST_CASE("numbers of another type or count are refused") {
  CHECK(refusal(std::vector<double>(5)) == "field is float64 [5] on cpu, which is impossible");
  CHECK(refusal(std::vector<std::int64_t>(6)) == "field is int64 [6] on cpu, which is impossible");
}

}  // namespace
}  // namespace muster::test
