#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/eval/detail/summary_title.h"
#include "muster/core/eval/evaluation.h"

namespace muster {
namespace {

constexpr std::int64_t kTopK = 3;
constexpr std::int64_t kWidestMatrix = 30;  // classes; more do not fit a line

std::string classTable(const Evaluation& e) {
  constexpr auto kRow = "{:>10} {:>10} {:>10.4f} {:>10.4f} {:>10.4f}\n";
  std::string text =
      fmt::format("{:>10} {:>10} {:>10} {:>10} {:>10}\n", "class", "examples", "precision", "recall", "F1");
  for (std::int64_t c = 0; c < e.classes(); ++c) {
    const auto row = e.confusionMatrix().begin() + c * e.classes();
    std::int64_t examples = 0;
    std::for_each(row, row + e.classes(), [&](std::int64_t n) { examples += n; });
    text += fmt::format(kRow, c, examples, e.precision(c), e.recall(c), e.f1(c));
  }
  return text + fmt::format(kRow, "macro mean", e.examples(), e.precision(), e.recall(), e.f1());
}

std::string matrixTable(const Evaluation& e) {
  if (e.classes() > kWidestMatrix)
    return fmt::format("{}: not printed for {} classes\n", detail::kConfusionTitle, e.classes());
  const auto largest = std::ranges::max(e.confusionMatrix());
  const auto width = std::max(fmt::formatted_size("{}", largest), fmt::formatted_size("{}", e.classes() - 1));
  auto text = fmt::format("{} (rows: true class, columns: predicted class)\n", detail::kConfusionTitle);
  const auto line = [&](const auto& head, const auto& cell) {
    text += fmt::format("{:>10}", head);
    for (std::int64_t c = 0; c < e.classes(); ++c) text += fmt::format(" {:>{}}", cell(c), width);
    text += '\n';
  };
  line("", [](std::int64_t c) { return c; });
  for (std::int64_t actual = 0; actual < e.classes(); ++actual)
    line(actual, [&](std::int64_t predicted) { return e.count(actual, predicted); });
  return text;
}

}  // namespace

std::string Evaluation::summary() const {
  std::string head = fmt::format("{}, {}: accuracy {:.4f}", plural(examples_, "example"),
                                 plural(classes_, "class", "classes"), accuracy());
  if (classes_ > kTopK) head += fmt::format(", top-{} {:.4f}", kTopK, topKAccuracy(kTopK));
  if (losses_.probabilities) head += fmt::format(", loss {:.4f}", loss());
  return head + "\n\n" + classTable(*this) + "\n" + matrixTable(*this);
}

}  // namespace muster
