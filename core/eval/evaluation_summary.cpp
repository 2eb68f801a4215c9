#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/base/printable_text.h"
#include "muster/core/eval/detail/label_width.h"
#include "muster/core/eval/detail/summary_title.h"
#include "muster/core/eval/evaluation.h"

namespace muster {
namespace {

constexpr std::int64_t kTopK = 3;
constexpr std::int64_t kWidestMatrix = 30;  // classes; more do not fit a line

/// [class] its number and, if it has another one, its name.
std::vector<std::string> labelsOf(const Evaluation& e) {
  std::vector<std::string> labels;
  for (std::int64_t c = 0; c < e.classes(); ++c) {
    labels.push_back(fmt::format("{}", c));
    if (e.classNames().empty()) continue;
    if (const auto& name = e.classNames()[static_cast<std::size_t>(c)]; name != labels.back())
      labels.back() = fmt::format("{} {}", c, printableText(name));
  }
  return labels;
}

std::string classTable(const Evaluation& e, const std::vector<std::string>& labels) {
  const int width = detail::labelWidth(labels);
  const auto rowOf = [&](std::string_view label, std::int64_t examples, double precision, double recall,
                         double f1) {
    return fmt::format("{:>{}} {:>10} {:>10.4f} {:>10.4f} {:>10.4f}\n", label, width, examples, precision,
                       recall, f1);
  };
  std::string text = fmt::format("{:>{}} {:>10} {:>10} {:>10} {:>10}\n", "class", width, "examples",
                                 "precision", "recall", "F1");
  for (std::int64_t c = 0; c < e.classes(); ++c) {
    const auto row = e.confusionMatrix().begin() + c * e.classes();
    std::int64_t examples = 0;
    std::for_each(row, row + e.classes(), [&](std::int64_t n) { examples += n; });
    text += rowOf(labels[static_cast<std::size_t>(c)], examples, e.precision(c), e.recall(c), e.f1(c));
  }
  return text + rowOf("macro mean", e.examples(), e.precision(), e.recall(), e.f1());
}

std::string matrixTable(const Evaluation& e, const std::vector<std::string>& labels) {
  if (e.classes() > kWidestMatrix)
    return fmt::format("{}: not printed for {} classes\n", detail::kConfusionTitle, e.classes());
  const auto largest = std::ranges::max(e.confusionMatrix());
  const auto width = std::max(fmt::formatted_size("{}", largest), fmt::formatted_size("{}", e.classes() - 1));
  auto text = fmt::format("{} (rows: true class, columns: predicted class)\n", detail::kConfusionTitle);
  const int head = detail::labelWidth(labels);
  const auto line = [&](std::string_view label, const auto& cell) {
    text += fmt::format("{:>{}}", label, head);
    for (std::int64_t c = 0; c < e.classes(); ++c) text += fmt::format(" {:>{}}", cell(c), width);
    text += '\n';
  };
  line("", [](std::int64_t c) { return c; });
  for (std::int64_t actual = 0; actual < e.classes(); ++actual)
    line(labels[static_cast<std::size_t>(actual)],
         [&](std::int64_t predicted) { return e.count(actual, predicted); });
  return text;
}

}  // namespace

void Evaluation::setClassNames(std::vector<std::string> names) {
  require(std::ssize(names) == classes_, "evaluation: {} for {}", plural(names.size(), "name"),
          plural(classes_, "class", "classes"));
  names_ = std::move(names);
}

std::string Evaluation::summary() const {
  const auto labels = labelsOf(*this);
  std::string head = fmt::format("{}, {}: accuracy {:.4f}", plural(examples_, "example"),
                                 plural(classes_, "class", "classes"), accuracy());
  if (classes_ > kTopK) head += fmt::format(", top-{} {:.4f}", kTopK, topKAccuracy(kTopK));
  if (losses_.probabilities) head += fmt::format(", loss {:.4f}", loss());
  return head + "\n\n" + classTable(*this, labels) + "\n" + matrixTable(*this, labels);
}

}  // namespace muster
