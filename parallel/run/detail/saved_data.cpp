#include "muster/parallel/run/detail/saved_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/io/output_path.h"
#include "muster/datasets/source/detail/example_hashes.h"
#include "muster/datasets/source/detail/held_out.h"
#include "muster/parallel/run/detail/saved_run.h"

namespace muster::detail {
namespace {

const std::string kRunNote = "muster.run", kDataNote = "muster.data";

/// What a model file says of its training; nothing of what it does not say.
struct Saved {
  std::optional<RunFile> run = {};
  std::optional<DataContents> contents = {};
};

/// What `read` makes of a note of a model file; nothing if it has none. @throws FileError.
template <typename T>
std::optional<T> noteIn(const ModelNotes& notes, const std::filesystem::path& path, const std::string& name,
                        std::string_view what, T (*read)(std::string_view)) {
  const auto note = notes.find(name);
  if (note == notes.end()) return {};
  try {
    return read(note->second);
  } catch (const InvalidArgument& error) {
    throw FileError(path, fmt::format("has {} that cannot be read: {}", what, error.what()));
  }
}

/// @throws FileError.
Saved savedIn(const std::filesystem::path& path) {
  const auto notes = readModelNotes(path);
  return {noteIn(notes, path, kRunNote, "a run", savedRun),
          noteIn(notes, path, kDataNote, "checksums of its data", DataContents::parse)};
}

/// The fields that give a run a test set of its own, with a value to replace.
std::string ownTestFields(const DataSource& d) {
  return fmt::format("{}{}", drawsTests(d) && d.testExamples > 0 ? "data.testExamples=0 and " : "",
                     d.type == "idx" ? "data.testImages=FILE and data.testLabels=FILE" : "data.test=FILE");
}

/// The data that a source trains with, as its files or its type name them.
const std::string& nameOf(const DataSource& d) {
  return !d.train.empty() ? d.train : !d.trainImages.empty() ? d.trainImages : d.type;
}

/// Whether two sources train with the same file or published data, whatever these hold.
bool areOfSameFile(const DataSource& one, const DataSource& other) {
  const auto &a = nameOf(one), &b = nameOf(other);
  return one.type == other.type && (a == b || isSameFile(a, b));
}

/// In what examples of a type of data differ from earlier ones, to follow the name of their file; "" if they
/// do not.
std::string differenceOf(const ExampleContents& was, const ExampleContents& now, std::string_view type) {
  if (was == now) return {};
  if (was.examples != now.examples)
    return fmt::format("{} (now {})", plural(was.examples, "example"), now.examples);
  if (was.unordered == now.unordered) return "the same examples in another order";
  return fmt::format("other examples, or other labels of them{}",
                     type == "images" ? ", or another libjpeg decoded them" : "");
}

/// In what the training data differ from those that a model was trained with, to follow its name; "" if they
/// do not.
std::string changeOf(const DataSource& was, const ExampleContents& learned, const DataSource& source,
                     const ExampleContents& now) {
  const auto other = differenceOf(learned, now, source.type);
  if (other.empty()) return {};
  if (areOfSameFile(source, was)) return fmt::format("was trained when {} had {}", nameOf(was), other);
  return fmt::format(
      "was trained with {}, and {} has {}", nameOf(was), nameOf(source),
      learned.examples == now.examples
          ? other
          : fmt::format("{} instead of {}", plural(now.examples, "example"), learned.examples));
}

/// Whether fewer examples are held out than were, and those are among them.
bool holdsOutLess(const DataSource& now, const DataSource& was) {
  return areOfSameFile(now, was) && now.trainExamples == was.trainExamples &&
         now.testExamples == was.testExamples && splitSeed(now) == splitSeed(was) &&
         now.validationExamples < was.validationExamples;
}

/// How to hold out the examples that were held out when a model was trained; "" if another seed is not all
/// that it needs.
std::string splitAdvice(const DataSource& now, const DataSource& was) {
  if (was.validationExamples != now.validationExamples || was.testExamples != now.testExamples ||
      splitSeed(was) == splitSeed(now))
    return {};
  return fmt::format("; data.splitSeed={} holds out the same", splitSeed(was));
}

/// Which examples test a model: those that are held out of the training data, those of a test set of its own.
struct Tested {
  bool heldOut = false, own = false;
};

/// What an earlier model has learned of the examples that test, as in "was trained with the test rows"; "" if
/// nothing says so.
std::string learnedOf(const EarlierTraining& earlier, const DataSource& source, const LoadedData& data,
                      Tested tested) {
  const auto& [model, was, learned] = earlier;
  const auto &now = data.contents.training, &test = data.contents.test;
  const bool table = source.type == "csv";  // pictures and tensors of other files are rarely the same
  if (was.type.empty())
    return tested.heldOut && table
               ? fmt::format("does not say which {0}s it has learned: it may know {0}s that are held out now",
                             nounOf(source))
               : "";
  if (tested.own && learned.unordered == test.unordered)
    return fmt::format("was trained with the test {}s", nounOf(source));
  if (!tested.heldOut || learned == now || source.type != was.type) return {};
  if (learned.unordered == now.unordered)
    return holdsOutLess(source, was)
               ? ""
               : fmt::format("was trained with examples that are held out now{}", splitAdvice(source, was));
  if (!table && source.train != was.train) return {};
  return fmt::format(
      "{}, so it may have learned some of those held out now{}", changeOf(was, learned, source, now),
      drawsTests(source) ? fmt::format("; {} tests with new {}s", ownTestFields(source), nounOf(source))
                         : "");
}

/// A warning of the latest of the earlier models that have, or may have, learned what tests a model; "" if
/// none has.
/// @param start  what they are to the training, as in "training.initialModel ".
std::string learnedWarning(std::string_view start, const std::filesystem::path& first,
                           std::span<const EarlierTraining> earlier, const DataSource& source,
                           const LoadedData& data, Tested tested) {
  for (const auto& one : earlier)
    if (const auto learned = learnedOf(one, source, data, tested); !learned.empty())
      return fmt::format("{}{} {}{}", start, first.string(),
                         one.model == first ? "" : fmt::format("began with {}, which ", one.model), learned);
  return {};
}

/// The fields of a run by which examples are dealt, each with that of a model's run.
class Split {
 public:
  Split(DataSource& now, const DataSource& was, std::span<const std::string> overrides)
      : now_(now), was_(was), overrides_(overrides) {}

  /// Takes a number of the model's run. An override is refused that says otherwise, whatever its value.
  void take(std::string_view field, std::int64_t DataSource::*number, std::int64_t unset) {
    replace(field, now_.*number, now_.*number, unset, was_.*number);
  }
  void takeSeed() {
    const auto seed = [](const DataSource& d) { return static_cast<std::int64_t>(splitSeed(d)); };
    replace("splitSeed", now_.splitSeed, seed(now_), -1, seed(was_));
  }
  bool isGiven(std::string_view field) const {
    const auto start = fmt::format("data.{}=", field);
    return std::ranges::any_of(overrides_, [&](auto& text) { return text.starts_with(start); });
  }
  /// What overrides, or the run's file, say otherwise, as in "data.splitSeed 5 (now 7)".
  std::vector<std::string> refused = {}, replaced = {};

 private:
  void replace(std::string_view field, std::int64_t& value, std::int64_t means, std::int64_t unset,
               std::int64_t known) {
    const bool given = isGiven(field);
    if (given ? means != known : value != unset && value != known)
      (given ? refused : replaced).push_back(fmt::format("data.{} {} (now {})", field, known, value));
    value = known;
  }

  DataSource& now_;
  const DataSource& was_;
  std::span<const std::string> overrides_;
};

/// @throws FileError if a part is held out now, and none was when the model was trained.
void requireHeldOut(const std::filesystem::path& model, const DataSource& now, const DataSource& was,
                    std::string_view part, std::string_view advice) {
  const auto number = part == "test" ? &DataSource::testExamples : &DataSource::validationExamples;
  if (part == "train" || now.*number == 0 || was.*number > 0) return;
  throw FileError(model,
                  fmt::format("was trained with data.{}Examples 0: no examples of {} were held out, so "
                              "none of them tests it; {}",
                              part, nameOf(was), advice));
}

}  // namespace

ModelNotes notesOf(const RunFile& run, const LoadedData& data) {
  return {{kRunNote, run.toJson()}, {kDataNote, data.contents.toJson()}};
}

bool hasChecksums(const std::filesystem::path& path) {
  return readModelNotes(path).contains(kDataNote);
}

std::optional<RunFile> runIn(const std::filesystem::path& path) {
  return noteIn(readModelNotes(path), path, kRunNote, "a run", savedRun);
}

void chooseData(RunFile& run, const std::filesystem::path& model) {
  if (run.data.type != kMnistOrGenerated) return;
  if (const auto saved = runIn(model)) run.data.type = saved->data.type;
}

std::string testAdvice(const DataSource& d, std::string_view part) {
  const auto without = part == "test" ? "" : fmt::format(", without --on {}", part);
  if (!isOfOwnFiles(d)) return "the test examples of the data set test it" + without;
  return fmt::format("{} tests with all examples of a file, whatever the model was trained with{}",
                     ownTestFields(d), without);
}

ChosenSplit chooseSplit(RunFile& run, const std::filesystem::path& model, std::string_view part,
                        std::span<const std::string> overrides) {
  const auto saved = runIn(model);
  if (!saved || saved->data.type != run.data.type) return {};
  DataSource& now = run.data;
  const DataSource& was = saved->data;
  if (part == "test" && (!drawsTests(now) || now.testExamples + was.testExamples == 0)) return {};
  requireHeldOut(model, now, was, part, testAdvice(now, part));
  if (isOfOwnFiles(now) && was.testExamples > 0)  // they are not validated or trained with
    now.test = now.testImages = now.testLabels = "";
  Split split(now, was, overrides);
  split.takeSeed();
  const bool fewer = part == "train" && split.isGiven("trainExamples");
  if (!fewer) split.take("trainExamples", &DataSource::trainExamples, 0);
  if (part == "test")
    now.validationExamples = was.validationExamples;  // tests are drawn before
  else
    split.take("validationExamples", &DataSource::validationExamples, 0);
  if (drawsTests(now)) split.take("testExamples", &DataSource::testExamples, 0);
  if (!split.refused.empty())
    throw FileError(model, fmt::format("was trained with {}, so it may have been trained with examples that "
                                       "would now be held out; leave that out, and they are held out as they "
                                       "were",
                                       fmt::join(split.refused, ", ")));
  if (split.replaced.empty()) return {.asTrained = !fewer};
  return {.asTrained = !fewer,
          .remark = fmt::format("{}: was trained with {}: what was held out then is held out now",
                                model.string(), fmt::join(split.replaced, ", "))};
}

void requireSameTrainingData(const std::filesystem::path& model, const DataSource& source,
                             const LoadedData& data, std::string_view part, std::string_view advice) {
  const auto [before, saved] = savedIn(model);
  if (!saved || !before) return;
  const auto& was = before->data;
  const auto& now = data.contents.training;
  const auto change = changeOf(was, saved->training, source, now);
  if (change.empty()) return;
  const bool other = saved->training.unordered != now.unordered && !areOfSameFile(source, was);
  if (!other || (part != "train" && source.type == was.type))
    throw FileError(model, fmt::format("{}; {}", change, advice));
  logWarning("{}: was trained with {}, and {} has other examples, of which it may know some", model.string(),
             nameOf(was), nameOf(source));
}

void requireSameData(const std::filesystem::path& file, const DataSource& source, const LoadedData& data) {
  requireSameTrainingData(
      file, source, data, /*part=*/"",
      fmt::format("training.initialModel={} begins another training, with its weights and the data of now",
                  file.string()));
  const auto saved = savedIn(file).contents;
  if (!saved) return;
  if (const auto other = differenceOf(saved->test, data.contents.test, source.type); !other.empty())
    logWarning("{}: was trained when the test data had {}; the scores are of those of now", file.string(),
               other);
}

std::string testRemark(const std::filesystem::path& model, const DataSource& source, const LoadedData& data) {
  const auto [before, saved] = savedIn(model);
  if (!saved || !before) return data.testWarning;
  const auto &was = saved->training, &tested = data.contents.test;
  DataSource both = source;
  both.train = before->data.train;
  both.trainImages = before->data.trainImages;
  if (was.examples == tested.examples && was.unordered == tested.unordered) return sameRemark(both);
  if (isSameFile(both.test, both.train) || isSameFile(both.testImages, both.trainImages))
    return fmt::format("{} was trained when {} had {}, so it may have learned some of the {}s that test it",
                       model.string(), nameOf(both), differenceOf(was, tested, both.type), nounOf(source));
  return data.train && data.contents.training.unordered == was.unordered ? data.testWarning : "";
}

std::vector<EarlierTraining> earlierTrainings(const RunFile& run, const std::filesystem::path& resumed) {
  const auto from = !resumed.empty() ? resumed : std::filesystem::path(run.training.initialModel);
  if (from.empty()) return {};
  const auto [before, saved] = savedIn(from);
  auto all = saved ? saved->earlier : std::vector<EarlierTraining>();
  if (!resumed.empty()) return all;
  EarlierTraining latest{.model = from.string()};
  if (saved && before) {
    latest.data = before->data;
    latest.training = saved->training;
  }
  std::erase_if(all, [&](const EarlierTraining& one) {
    return one.data.type == latest.data.type && one.training == latest.training;
  });
  all.insert(all.begin(), std::move(latest));
  return all;
}

std::string earlierRemark(const std::filesystem::path& model, const DataSource& source,
                          const LoadedData& data, std::string_view part) {
  const auto saved = savedIn(model).contents;
  if (!saved || part == "train") return {};
  const bool own = part == "test" && !drawsTests(source);
  return learnedWarning("", model, saved->earlier, source, data, {.heldOut = !own, .own = own});
}

std::vector<std::string> dataWarnings(const RunFile& run, const LoadedData& data) {
  const auto& t = run.training;
  const bool begins = !t.initialModel.empty();
  const bool drawn = drawsTests(run.data) && !data.rows.test.empty();
  const Tested tested{.heldOut = drawn || !data.rows.validation.empty(), .own = true};
  std::vector<std::string> all{
      data.testWarning,
      learnedWarning(begins ? "training.initialModel " : "training.resume ",
                     begins ? t.initialModel : t.resume, data.contents.earlier, run.data, data, tested)};
  std::erase(all, "");
  all.insert(all.end(), data.heldOutWarnings.begin(), data.heldOutWarnings.end());
  return all;
}

}  // namespace muster::detail
