#include "muster/parallel/run/detail/saved_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/datasets/source/detail/held_out.h"
#include "muster/parallel/run/detail/saved_run.h"

namespace muster::detail {
namespace {

const std::string kRunNote = "muster.run", kDataNote = "muster.data";

/// What `read` makes of a note that a model file has; nothing if it has none. @throws FileError.
template <typename T>
std::optional<T> noteIn(const std::filesystem::path& path, const std::string& name, std::string_view what,
                        T (*read)(std::string_view)) {
  const ModelNotes notes = readModelNotes(path);
  const auto note = notes.find(name);
  if (note == notes.end()) return {};
  try {
    return read(note->second);
  } catch (const InvalidArgument& error) {
    throw FileError(path, fmt::format("has {} that cannot be read: {}", what, error.what()));
  }
}

/// What the data held that a model was trained with; nothing if its file does not say it.
std::optional<DataContents> contentsIn(const std::filesystem::path& path) {
  return noteIn(path, kDataNote, "checksums of its data", DataContents::parse);
}

/// In what examples differ from earlier ones, to follow the name of their file; "" if they do not.
std::string differenceOf(const ExampleContents& was, const ExampleContents& now) {
  if (was == now) return {};
  if (was.examples != now.examples)
    return fmt::format("{} (now {})", plural(was.examples, "example"), now.examples);
  if (was.unordered == now.unordered) return "the same examples in another order";
  return "other examples, or other labels of them";
}

/// How to hold out the examples that were held out when a model was trained; "" if its file does not say it.
std::string splitAdvice(const DataSource& now, const std::filesystem::path& model) {
  const auto saved = runIn(model);
  if (!saved || saved->data.validationExamples != now.validationExamples ||
      saved->data.testExamples != now.testExamples)
    return {};
  return fmt::format("; data.splitSeed={} holds out the same", splitSeed(saved->data));
}

}  // namespace

ModelNotes notesOf(const RunFile& run, const LoadedData& data) {
  return {{kRunNote, run.toJson()}, {kDataNote, data.contents.toJson()}};
}

std::optional<RunFile> runIn(const std::filesystem::path& path) {
  return noteIn(path, kRunNote, "a run", savedRun);
}

void chooseData(RunFile& run, const std::filesystem::path& model) {
  if (run.data.type != kMnistOrGenerated) return;
  if (const auto saved = runIn(model)) run.data.type = saved->data.type;
}

void chooseSplit(RunFile& run, const std::filesystem::path& model, std::string_view part,
                 std::span<const std::string> overrides) {
  const auto saved = runIn(model);
  if (!saved || saved->data.type != run.data.type) return;
  DataSource& now = run.data;
  const DataSource& was = saved->data;
  const bool drawsTest = drawsTests(now) && (now.testExamples > 0 || was.testExamples > 0);
  if (part == "test" && !drawsTest) return;
  std::vector<std::string> refused, replaced;
  const auto take = [&](std::string_view field, std::int64_t& value, std::int64_t unset, std::int64_t known) {
    const auto start = fmt::format("data.{}=", field);
    const bool given = std::ranges::any_of(overrides, [&](auto& text) { return text.starts_with(start); });
    if (value != unset && value != known)
      (given ? refused : replaced).push_back(fmt::format("data.{} {} (now {})", field, known, value));
    value = known;
  };
  take("splitSeed", now.splitSeed, -1, static_cast<std::int64_t>(splitSeed(was)));
  take("trainExamples", now.trainExamples, 0, was.trainExamples);
  take("validationExamples", now.validationExamples, 0, was.validationExamples);
  if (drawsTest) take("testExamples", now.testExamples, 0, was.testExamples);
  if (!refused.empty())
    throw FileError(model, fmt::format("was trained with {}, so it may have been trained with examples that "
                                       "would now be held out; leave that out, and they are held out as they "
                                       "were",
                                       fmt::join(refused, ", ")));
  if (!replaced.empty())
    logInfo("{}: was trained with {}: what was held out then is held out now", model.string(),
            fmt::join(replaced, ", "));
}

void requireSameTrainingData(const std::filesystem::path& model, const LoadedData& data,
                             std::string_view advice) {
  const auto saved = contentsIn(model);
  if (!saved) return;
  if (const auto other = differenceOf(saved->training, data.contents.training); !other.empty())
    throw FileError(model, fmt::format("was trained when {} had {}; {}", data.origin, other, advice));
}

void requireSameData(const std::filesystem::path& file, const LoadedData& data) {
  const auto advice =
      fmt::format("training.initialModel={} begins another training, with its weights and the data of now",
                  file.string());
  requireSameTrainingData(file, data, advice);
  const auto saved = contentsIn(file);
  if (!saved) return;
  if (const auto other = differenceOf(saved->test, data.contents.test); !other.empty())
    throw FileError(file, fmt::format("was trained when the test data had {}; {}", other, advice));
}

bool isTrainingData(const std::filesystem::path& model, const ExampleContents& tested) {
  const auto saved = contentsIn(model);
  return saved && saved->training.examples == tested.examples &&
         saved->training.unordered == tested.unordered;
}

std::vector<std::string> dataWarnings(const PreparedRun& prepared) {
  std::vector<std::string> all{prepared.data.testWarning};
  const std::filesystem::path model = prepared.run.training.initialModel;
  const auto& rows = prepared.data.rows;
  const auto& now = prepared.data.contents.training;
  const bool heldOut = !rows.validation.empty() || (drawsTests(prepared.run.data) && !rows.test.empty());
  if (const auto saved = model.empty() || !heldOut ? std::nullopt : contentsIn(model))
    if (saved->training.unordered == now.unordered && saved->training.ordered != now.ordered)
      all.push_back(
          fmt::format("training.initialModel {} was trained with other of these examples held out, so "
                      "it has learned some of those that are held out now{}",
                      model.string(), splitAdvice(prepared.run.data, model)));
  std::erase(all, "");
  return all;
}

}  // namespace muster::detail
