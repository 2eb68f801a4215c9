#include "examples/muster/trained.h"

#include <array>
#include <exception>
#include <string_view>
#include <utility>

#include "examples/muster/options.h"
#include "examples/muster/run_paths.h"
#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/io/input_file.h"
#include "muster/core/io/model_file.h"
#include "muster/datasets/source/detail/held_out.h"
#include "muster/parallel/run/detail/run_network.h"
#include "muster/parallel/run/detail/saved_data.h"
#include "muster/parallel/run/named_networks.h"
#include "muster/parallel/run/prepared_run.h"

namespace program {

using namespace muster;

namespace {

LoadedData allData(const DataSource& source, const InputDescription& known, const std::string& part) {
  return loadData(source, PlacementWish::Host, std::array{Device::cpu()}, 1, known, part);
}

/// Whether there is no such file, which the attempt to read it says.
bool isMissing(const std::string& file) {
  return fileTypeOf(file) == std::filesystem::file_type::not_found;
}

/// As allData. Numbers of examples to hold out that are the model's own, not those of `given`, are named so.
/// @throws FileError for these.  @param advice  what to do instead.
LoadedData dividedData(const DataSource& source, const DataSource& given, const InputDescription& known,
                       const std::string& part, const std::filesystem::path& model,
                       std::string_view advice) try {
  return allData(source, known, part);
} catch (const detail::TooManyHeldOut& error) {
  const auto now = error.numberIn(given), was = error.numberIn(source);
  if (now == was) throw;
  throw FileError(model, fmt::format("was trained with data.{} {} (now {}), and what was held out then is "
                                     "held out now, but {}; {}",
                                     error.field(), was, now, error.there(), advice));
}

/// What is to be known of a test set of its own that was read without the training data. These are read to
/// compare the two, if they are a table, are there and are what the model was trained with.
std::string remarkOn(const std::filesystem::path& model, const DataSource& source, const LoadedData& tested,
                     const InputDescription& known) {
  auto remark = detail::testRemark(model, source, tested);
  if (!remark.empty() || tested.train || source.type != "csv") return remark;
  auto sink = setLogSink([](LogLevel, std::string_view) {});  // the test set has been logged
  try {
    remark = detail::testRemark(model, source, allData(source, known, "test"));
  } catch (const std::exception&) {
    remark.clear();  // no test needs the training data
  }
  setLogSink(std::move(sink));
  return remark;
}

}  // namespace

void describeTrained(CommandLine& line, TrainedOptions& options) {
  line.group("Options");
  describeSets(line, options.sets);
  line.add("model", options.model, "FILE", "the trained network (default: the file of training.model)");
  line.add("on", options.on, "DATA", "test, validation or train", [](const char*, const std::string& given) {
    require(given == "test" || given == "validation" || given == "train",
            "--on must be test, validation or train, got {}", given);
  });
}

Trained::Trained(const Call& call, const TrainedOptions& options)
    : run(readRun(fileOf(call, "a run file such as run.json"), options.sets)) {
  require(call.others.empty() || isModelFile(call.others.front()) || isMissing(call.others.front()),
          "unexpected argument {}: after a run file may come a model file, as in {} {} model.safetensors; "
          "new rows "
          "are predicted by a model file alone, as in muster predict model.safetensors new.csv",
          call.others.empty() ? "" : call.others.front(), call.program, call.file);
  require(call.others.empty() || options.model.empty(), "--model and {} are two models; give one",
          call.others.empty() ? "" : call.others.front());
  const std::filesystem::path model = !call.others.empty()     ? std::filesystem::path(call.others.front())
                                      : !options.model.empty() ? options.model
                                                               : std::filesystem::path(run.training.model);
  Paths paths;
  paths.reads("the run file", call.file);
  paths.reads(!call.others.empty()    ? "the model"
              : options.model.empty() ? "training.model"
                                      : "--model",
              model);
  addTo(paths, run.data);
  paths.writesResult("--out", options.out, Content::Predictions);
  paths.writesResult("--json", options.json, Content::Results);
  paths.check();
  detail::chooseData(run, model);
  const auto advice = detail::testAdvice(run.data, options.on);
  const DataSource given = run.data;
  const auto split = detail::chooseSplit(run, model, options.on, options.sets);
  run.data.shuffle = run.data.dropLast = false;  // all of them, in the order of their file
  const auto known = readInputDescription(model);
  auto tested = options.on == "test" ? loadTestData(run.data, known) : std::nullopt;
  data = tested ? std::move(*tested) : dividedData(run.data, given, known, options.on, model, advice);
  if (!split.remark.empty()) logInfo("{}", split.remark);
  if (!data.notice.empty()) logWarning("{}", data.notice);
  if (options.on == "test" && !detail::drawsTests(run.data)) {
    if (const auto remark = remarkOn(model, run.data, data, known); !remark.empty()) logWarning("{}", remark);
  } else if (split.asTrained && (options.on != "test" || data.test)) {  // else `on` refuses it
    detail::requireSameTrainingData(model, run.data, data, options.on, advice);
  }
  if (const auto remark = detail::earlierRemark(model, run.data, data, options.on); !remark.empty())
    logWarning("{}", remark);
  const bool another = model != run.training.model;  // which may have another network
  if (another || isNamedNetwork(run.network)) {
    network = Network::load(model);  // these data may have fewer symbols than those that it was trained with
    return;
  }
  network = detail::makeNetwork(run, data);
  loadState(*network, model);
}

DataSetIterator& Trained::on(const std::string& which) const {
  DataSetIterator* const chosen = which == "test"         ? data.test.get()
                                  : which == "validation" ? data.validation.get()
                                                          : data.train.get();
  const auto* const why = which == "validation"    ? "data.validationExamples is 0"
                          : run.data.type == "idx" ? "data.testImages is empty"
                                                   : "data.test is empty";
  require(chosen != nullptr,
          "the run file has no {} data ({}); {}--on train takes the examples that it was trained with", which,
          why, data.validation ? "--on validation takes the examples held out from the training, " : "");
  return *chosen;
}

}  // namespace program
