#include "muster/core/eval/any_evaluation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/data/output_names.h"
#include "muster/core/eval/detail/score_text.h"
#include "muster/core/eval/non_finite_prediction.h"

namespace muster {
namespace {

constexpr std::size_t kOwnNumbers = 1 + 2 * ExactSum::kDigits;  // of toNumbers: the task and the loss

template <typename Kind>
constexpr bool kIsRegression = std::is_same_v<std::decay_t<Kind>, RegressionEvaluation>;

[[noreturn]] void refuseScore(std::string_view score) {
  throw InvalidArgument(fmt::format("evaluation: a regression has no {}; it has R2, RMSE and MAE", score));
}

}  // namespace

AnyEvaluation::AnyEvaluation(Task task, std::int64_t columns) : result_(make(task, columns)) {}

AnyEvaluation::Result AnyEvaluation::make(Task task, std::int64_t columns) {
  switch (task) {
    case Task::Classification:
      return Evaluation(std::max<std::int64_t>(columns, 2));
    case Task::Regression:
      return RegressionEvaluation(columns);
    case Task::Labels:
      return BinaryEvaluation(columns);
  }
  throw InvalidArgument(fmt::format("there is no task number {}", static_cast<int>(task)));
}

void AnyEvaluation::requireTask(Task wanted) const {
  require(task() == wanted, "evaluation: this is of the task {}, not {}", nameOf(task()), nameOf(wanted));
}

std::int64_t AnyEvaluation::examples() const {
  return std::visit([](const auto& one) { return one.examples(); }, result_);
}

std::int64_t AnyEvaluation::columns() const {
  switch (task()) {
    case Task::Classification:
      return classification().classes();
    case Task::Regression:
      return regression().columns();
    case Task::Labels:
      return labels().labels();
  }
  return 0;
}

double AnyEvaluation::loss() const {
  if (const double weight = weights_.value(); weight > 0) return losses_.value() / weight;
  return task() == Task::Classification ? classification().loss() : std::numeric_limits<double>::quiet_NaN();
}

double AnyEvaluation::accuracy() const {
  return std::visit(
      [](const auto& one) -> double {
        if constexpr (kIsRegression<decltype(one)>)
          refuseScore("accuracy");
        else
          return one.accuracy();
      },
      result_);
}

double AnyEvaluation::f1() const {
  return std::visit(
      [](const auto& one) -> double {
        if constexpr (kIsRegression<decltype(one)>)
          refuseScore("F1");
        else
          return one.f1();
      },
      result_);
}

std::pair<std::string_view, double> AnyEvaluation::mainScore() const {
  if (task() == Task::Regression) return {"r2", regression().r2()};
  return {"accuracy", accuracy()};
}

std::string AnyEvaluation::line() const {
  switch (task()) {
    case Task::Classification:
      return fmt::format("accuracy {:.4f}, macro F1 {:.4f}", accuracy(), f1());
    case Task::Regression: {
      const auto& one = regression();
      return fmt::format("R2 {}, RMSE {:.6g}, MAE {:.6g}", detail::scoreText(one.r2()),
                         one.rootMeanSquaredError(), one.meanAbsoluteError());
    }
    case Task::Labels:
      return fmt::format("accuracy {:.4f}, AUC {}", accuracy(), detail::scoreText(labels().auc()));
  }
  return {};
}

std::string AnyEvaluation::summary() const {
  return std::visit([](const auto& one) { return one.summary(); }, result_);
}

void AnyEvaluation::add(const Tensor& predictions, const Tensor& labels, const Tensor& mask,
                        const std::optional<StepScore>& loss) {
  if (loss && (!std::isfinite(loss->score) || !std::isfinite(loss->weight)))
    throw NonFinitePrediction("evaluation: the loss of a batch is not finite");
  std::visit([&](auto& one) { one.add(predictions, labels, mask); }, result_);
  if (!loss) return;
  losses_.add(loss->score * loss->weight);
  weights_.add(loss->weight);
}

void AnyEvaluation::merge(const AnyEvaluation& other) {
  other.requireTask(task());
  std::visit([&](auto& one) { one.merge(std::get<std::decay_t<decltype(one)>>(other.result_)); }, result_);
  losses_.add(other.losses_);
  weights_.add(other.weights_);
}

void AnyEvaluation::describe(const InputDescription& description) {
  if (auto* const classes = std::get_if<Evaluation>(&result_);
      classes != nullptr && std::ssize(description.classes) == columns())
    classes->setClassNames(description.classes);
  if (auto* const numbers = std::get_if<RegressionEvaluation>(&result_);
      numbers != nullptr && std::ssize(description.targets) == columns())
    numbers->setTargets(description.targets);
  if (auto* const labels = std::get_if<BinaryEvaluation>(&result_)) {
    auto names = outputNames(description);
    if (std::ssize(names) == columns()) labels->setLabelNames(std::move(names));
  }
}

std::vector<std::int64_t> AnyEvaluation::toNumbers() const {
  std::vector<std::int64_t> numbers = {static_cast<std::int64_t>(task())};
  for (const ExactSum* sum : {&losses_, &weights_}) {
    const auto digits = sum->toNumbers();
    numbers.insert(numbers.end(), digits.begin(), digits.end());
  }
  const auto rest = std::visit([](const auto& one) { return one.toNumbers(); }, result_);
  numbers.insert(numbers.end(), rest.begin(), rest.end());
  return numbers;
}

AnyEvaluation AnyEvaluation::fromNumbers(std::span<const std::int64_t> numbers) {
  require(numbers.size() > kOwnNumbers && numbers[0] >= 0 &&
              numbers[0] <= static_cast<std::int64_t>(Task::Labels),
          "evaluation: these {} numbers are none", numbers.size());
  const auto rest = numbers.subspan(kOwnNumbers);
  const auto read = [&]() -> Result {
    switch (static_cast<Task>(numbers[0])) {
      case Task::Classification:
        return Evaluation::fromNumbers(rest);
      case Task::Regression:
        return RegressionEvaluation::fromNumbers(rest);
      default:
        return BinaryEvaluation::fromNumbers(rest);
    }
  };
  AnyEvaluation all(read());
  all.losses_ = ExactSum::fromNumbers(numbers.subspan(1));
  all.weights_ = ExactSum::fromNumbers(numbers.subspan(1 + ExactSum::kDigits));
  return all;
}

}  // namespace muster
