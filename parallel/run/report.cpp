#include "muster/parallel/run/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/io/atomic_file.h"
#include "muster/core/io/json_fields.h"
#include "muster/datasets/image_set_iterator.h"
#include "muster/parallel/run/detail/session_parts.h"
#include "muster/parallel/run/run_session.h"

namespace muster {
namespace {

constexpr std::size_t kMostMistakes = 80;

/// A misclassified image of those that the model is judged by.
struct Mistake {
  std::int64_t image = 0;
  int actual = 0;
  int predicted = 0;
  float sureness = 0;  // the predicted class's probability
};

/// The iterator keeps the order of the set, so row numbers identify images.
std::vector<Mistake> findMistakes(Model& model, ImageSetIterator& judged) {
  std::vector<Mistake> mistakes;
  Batch batch;
  Tensor predictions;
  std::int64_t image = 0;
  judged.reset(0);
  while (judged.next(batch)) {
    model.output(batch, predictions);
    const auto classes = predictions.shape()[1];
    if (classes < 2) return {};  // one sigmoid for two classes
    const float* row = predictions.data<float>();
    for (std::int64_t i = 0; i < batch.examples(); ++i, ++image, row += classes) {
      const float* const best = std::max_element(row, row + classes);
      const int actual = judged.set()->label(image);
      if (best - row != actual) mistakes.push_back({image, actual, static_cast<int>(best - row), *best});
    }
  }
  std::ranges::stable_sort(mistakes, std::ranges::greater{}, &Mistake::sureness);
  return mistakes;
}

std::string confusionText(const AnyEvaluation& scores, const LoadedData& data,
                          std::span<const std::string> remarks) {
  auto text = fmt::format("{}, from {}\n", data.title, data.origin);
  for (const auto& remark : remarks) text += remark + "\n";
  return fmt::format("{}\n{}", text, scores.summary());
}

std::string className(const LoadedData& data, std::int64_t c) {
  const auto place = static_cast<std::size_t>(c);
  return place < data.description.classes.size() ? data.description.classes[place] : fmt::format("{}", c);
}

void putConfusion(JsonWriter& json, const Evaluation& evaluation, const LoadedData& data) {
  std::vector<std::string> names;
  for (std::int64_t c = 0; c < evaluation.classes(); ++c) names.push_back(className(data, c));
  json.put("classes", std::span<const std::string>(names));
  json.list("rows", names.size(), [&](std::size_t actual, JsonWriter& row) {
    std::vector<double> counts;
    for (std::int64_t p = 0; p < evaluation.classes(); ++p)
      counts.push_back(static_cast<double>(evaluation.count(static_cast<std::int64_t>(actual), p)));
    row.numbers("counts", counts);
  });
}

/// Converts bytes [C, H, W] to grey pixels in hexadecimal.
std::string greyPixels(std::span<const std::uint8_t> image, std::size_t pixels) {
  std::string text;
  for (std::size_t i = 0; i < pixels; ++i) {
    std::size_t sum = 0;
    for (std::size_t at = i; at < image.size(); at += pixels) sum += image[at];
    fmt::format_to(std::back_inserter(text), "{:02x}", sum * pixels / image.size());
  }
  return text;
}

void putMistakes(JsonWriter& json, const std::vector<Mistake>& mistakes, const LoadedData& data,
                 const ImageSet& images) {
  const auto height = images.imageShape()[1], width = images.imageShape()[2];
  json.put("title", "The mistakes that it was surest of");
  json.put("width", width);
  json.put("height", height);
  json.list("list", std::min(kMostMistakes, mistakes.size()), [&](std::size_t i, JsonWriter& one) {
    const Mistake& mistake = mistakes[i];
    one.put("pixels", std::string_view(
                          greyPixels(images.image(mistake.image), static_cast<std::size_t>(height * width))));
    one.put("caption",
            std::string_view(fmt::format("{}, taken for {} ({:.0f} %)", className(data, mistake.actual),
                                         className(data, mistake.predicted), 100 * mistake.sureness)));
  });
}

/// The document for stillPage.
std::string documentOf(const AnyEvaluation& scores, Model& model, const LoadedData& data,
                       DataSetIterator& judged, std::span<const std::string> remarks) {
  JsonWriter all;
  all.group("document", [&](JsonWriter& json) {
    json.put("title", std::string_view(data.title));
    std::vector<std::string> paragraphs{fmt::format(
        "The data are from {}. Of {} {}: {}, loss {:.4f}.", data.origin, plural(scores.examples(), "example"),
        data.test ? "to test with" : "held out from the training, for validation", scores.line(),
        scores.loss())};
    json.put("paragraphs", std::span<const std::string>(paragraphs));
    if (!remarks.empty()) json.put("warnings", remarks);
    if (scores.task() != Task::Classification) return;
    json.group("confusion", [&](JsonWriter& in) { putConfusion(in, scores.classification(), data); });
    auto* const images = dynamic_cast<ImageSetIterator*>(&judged);
    if (images == nullptr) return;
    if (const auto mistakes = findMistakes(model, *images); !mistakes.empty())
      json.group("pictures", [&](JsonWriter& in) { putMistakes(in, mistakes, data, *images->set()); });
  });
  return all.line();
}

}  // namespace

std::string writeReport(RunSession& session, const RunScores& run) {
  const std::filesystem::path directory = session.run().listeners.report;
  std::error_code problem;
  std::filesystem::create_directories(directory, problem);
  if (problem) throw FileError(directory, fmt::format("cannot be made: {}", problem.message()));
  const auto& scores = run.judged();
  auto& data = session.data();
  auto remarks = session.prepared().warnings;
  if (auto interruption = session.interruption(); !interruption.empty())
    remarks.insert(remarks.begin(), std::move(interruption));
  const bool classes = scores.task() == Task::Classification;
  if (classes) writeFileAtomically(directory / "confusion.txt", confusionText(scores, data, remarks));
  const auto document =
      documentOf(scores, session.network(), data, run.test ? *data.test : *data.validation, remarks);
  writeFileAtomically(directory / "report.html", detail::SessionParts::of(session).watching.still(document));
  return fmt::format("{}: report.html{}", directory.string(), classes ? ", confusion.txt" : "");
}

}  // namespace muster
