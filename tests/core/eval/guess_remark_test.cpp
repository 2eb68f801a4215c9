#include "muster/core/eval/guess_remark.h"

#include "tests/support/batch_of.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

const std::string kUndecided = ": the inputs may not determine it, or the training was too short";

/// Of two classes: `right` and `wrong` examples of the first, `others` of the second, all predicted rightly.
AnyEvaluation counted(std::int64_t right, std::int64_t wrong, std::int64_t others) {
  AnyEvaluation e(Task::Classification, 2);
  const auto add = [&](std::int64_t count, std::int64_t label, float second) {
    for (std::int64_t i = 0; i < count; ++i)
      e.add(Tensor::of({1 - second, second}, {1, 2}), integers({label}));
  };
  add(right, 0, 0.25f);
  add(wrong, 0, 0.75f);
  add(others, 1, 0.75f);
  e.describe({.classes = {"often", "rare"}});
  return e;
}

AnyEvaluation regressed(const Tensor& predictions, const Tensor& labels) {
  AnyEvaluation e(Task::Regression, 1);
  e.add(predictions, labels);
  e.describe({.targets = {{.name = "price"}}});
  return e;
}

// Intervals: scipy.stats.binomtest(k, n).proportion_ci(method="wilson") and
// pearsonr(...).confidence_interval().

TEST_CASE("the interval of a share is Wilson's") {
  const auto interval = [](double share, double examples) {
    return digitsOf(12, shareInterval(share, examples)[0], shareInterval(share, examples)[1]);
  };
  CHECK(interval(27.0 / 29, 29) == digitsOf(12, 0.780354198497243, 0.9808787338305666));
  CHECK(interval(1, 5) == digitsOf(12, 0.5655175352168251, 1));
  CHECK(interval(0.6, 100) == digitsOf(12, 0.5020025867910618, 0.6905987135675411));
}

TEST_CASE("a classification is compared with the commonest class, and few examples do not decide") {
  CHECK(guessRemark(counted(15, 3, 3)) ==
        "the 21 held-out examples are predicted no better than by the commonest class often for all "
        "(accuracy 0.8571, and 0.8571)" +
            kUndecided);
  // One of 6 is right that the commonest class has wrong, and none the other way: 1 is not above sqrt(1).
  CHECK(guessRemark(counted(5, 0, 1)) ==
        "the 6 held-out examples are predicted hardly better than by the commonest class often for all "
        "(accuracy 1.0000, and 0.8333): that may be chance");
  CHECK(guessRemark(counted(5, 0, 2)).empty());    // 2 above sqrt(2)
  CHECK(!guessRemark(counted(20, 3, 6)).empty());  // 6 - 3 is sqrt(6 + 3)
  CHECK(guessRemark(counted(20, 3, 7)).empty());   // 7 - 3 above sqrt(10)
}

TEST_CASE("with class weights an example counts as much as in the loss") {
  // All 18 of the first class are right, and none of the 2 of the other. Each class weighs 9 in all.
  const auto never = counted(18, 0, 0), found = counted(12, 6, 2);
  AnyEvaluation missed(Task::Classification, 2);
  missed.merge(never);
  for (int i = 0; i < 2; ++i) missed.add(Tensor::of({0.75f, 0.25f}, {1, 2}), integers({1}));
  missed.describe({.classes = {"often", "rare"}});
  const std::vector<float> balanced{0.5f, 4.5f};
  CHECK(guessRemark(missed, balanced) ==
        "the 20 held-out examples are predicted no better than by the class often for all (accuracy, by "
        "class weights, 0.5000, and 0.5000)" +
            kUndecided);
  // 14 of 20 are right, fewer than the 18 of the commonest class, but balanced it is 5/6: won is 9, lost 3.
  CHECK_CONTAINS(guessRemark(found), "no better than by the commonest class often");
  CHECK_CONTAINS(guessRemark(found, balanced), "hardly better");  // 6 is below sqrt(2 * 4.5^2 + 6 * 0.5^2)
  CHECK(guessRemark(counted(60, 30, 10), balanced).empty());      // 45 - 15 above sqrt(210)
}

TEST_CASE("held-out numbers that are all equal do not show how well they are predicted") {
  const Tensor fives = Tensor::of({5, 5}, {2, 1});
  const std::string price = "how well price is predicted (R2 undefined)";
  CHECK(guessRemark(regressed(fives, fives)) ==
        "the 2 held-out examples have no different numbers in float32, so they do not show " + price);
  CHECK(guessRemark(regressed(fives.rows(0, 1), fives.rows(0, 1))) ==
        "one held-out example has no different numbers in float32, so it does not show " + price);
}

TEST_CASE("a regression is compared with the mean, and few examples do not decide") {
  const Tensor rising = Tensor::of({1, 2, 3, 4, 5}, {5, 1});
  // R2 is 1 - 10.125 / 10.8; the correlation is 0.2887, atanh(0.2887) sqrt(2) = 0.42 standard errors.
  CHECK(guessRemark(regressed(Tensor::of({2.5f, 2.75f, 3, 3.25f, 3.5f}, {5, 1}),
                              Tensor::of({2, 2, 5, 1, 4}, {5, 1}))) ==
        "the 5 held-out examples are predicted hardly better than by the mean of price (R2 0.0625): that may "
        "be chance");
  CHECK(guessRemark(regressed(rising, Tensor::of({2, 1, 4, 3, 4}, {5, 1}))).empty());  // 0.7276: 1.31
  CHECK(guessRemark(regressed(rising, rising)).empty());
  CHECK(guessRemark(regressed(rising, Tensor::of({5, 4, 3, 2, 1}, {5, 1}))) ==
        "the 5 held-out examples are predicted no better than by the mean of price (R2 -3.0000)" +
            kUndecided);
}

TEST_CASE("few examples have their interval beside them") {
  const std::string interval = "95 % interval of the accuracy: 0.57 to 1.00",
                    chose = "they chose the best epoch, too, so new examples may do worse";
  CHECK(intervalText(counted(4, 0, 1), true) == " (" + interval + "; " + chose + ")");
  CHECK(intervalText(counted(4, 0, 1), false) == " (" + interval + ")");
  CHECK(intervalText(AnyEvaluation(Task::Labels, 2), true).empty());
  const Tensor numbers = Tensor::of({1, 2, 3}, {3, 1});
  CHECK(intervalText(regressed(numbers, numbers), true) == " (" + chose + ")");
  CHECK(intervalText(regressed(numbers, numbers), false).empty());
}

}  // namespace
}  // namespace muster::test
