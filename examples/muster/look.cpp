// The commands that do not train.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "examples/muster/commands.h"
#include "examples/muster/options.h"
#include "examples/muster/run_paths.h"
#include "examples/muster/standard_streams.h"
#include "examples/muster/trained.h"
#include "muster/core/base/error.h"
#include "muster/core/io/model_file.h"
#include "muster/core/io/network_json.h"
#include "muster/core/io/scores_json.h"
#include "muster/parallel/run/detail/field_list.h"
#include "muster/parallel/run/detail/preparation.h"
#include "muster/parallel/run/detail/resuming.h"
#include "muster/parallel/run/detail/run_devices.h"
#include "muster/parallel/run/detail/run_network.h"
#include "muster/parallel/run/named_networks.h"
#include "muster/parallel/run/prepared_run.h"
#include "muster/parallel/run/run_plan.h"
#include "muster/parallel/run/run_schema.h"
#include "muster/parallel/strategies/named_strategy.h"

namespace program {
namespace {

using namespace muster;

}  // namespace

int evaluate(const Call& call) {
  TrainedOptions options;
  CommandLine line(
      "Tests a trained network on the data of a run file.\n\n"
      "  muster evaluate run.json\n"
      "  muster evaluate run.json run/checkpoint-best.safetensors --on validation     another model\n"
      "  muster evaluate run.json --json result.json     all numbers, also of each class\n");
  describeTrained(line, options);
  line.add("json", options.json, "FILE", "write all numbers; -: to standard output, instead of the tables");
  if (!readOptions(line, call)) return 0;
  const auto trained = sayErrors(asSets, [&] { return Trained(call, options); });
  DataSetIterator& data = trained.on(options.on);
  const auto evaluation = trained.network->evaluateTask(data);
  if (!options.json.empty()) writeResult(options.json, scoresJson(evaluation));
  if (options.json == "-") return 0;
  printResult(evaluation.summary());
  return 0;
}

int summary(const Call& call) {
  TrainedOptions options;
  bool json = false;
  CommandLine line(
      "Prints the layers, shapes and parameters of a network, of a run file or of a model file.\n\n"
      "  muster summary run.json\n"
      "  muster summary model.safetensors --json     the network as a run file has it\n");
  line.group("Options");
  describeSets(line, options.sets);
  line.flag("json", json, "print the network's configuration instead, for a run file");
  if (!readOptions(line, call)) return 0;
  const auto& file = fileOf(call, "a run file or a model file");
  std::unique_ptr<Network> network;
  require(!file.ends_with(".zip"),
          "{}: a zip file, such as a model of Deeplearning4j: muster convert {} --out model.safetensors "
          "makes a model of it",
          file, file);
  if (isModelFile(file)) {
    line.refuse({"set"}, "works on run files only, and this is a model file");
    network = Network::load(file);
  } else {
    const auto run = readRun(file, options.sets);
    network = sayErrors(asSets, [&] {
      return isNamedNetwork(run.network) ? detail::networkForData(run) : networkFromJson(run.network);
    });
  }
  printResult(json ? network->toJson() : network->summary());
  return 0;
}

int plan(const Call& call) {
  TrainingOptions options;
  CommandLine line(
      "Says what muster train would do with a run file: data, network, workers, merging and memory. Trains\n"
      "nothing, writes no file, and refuses what train refuses; where only checkpoints of an earlier\n"
      "training are in the way, after the plan.\n\n"
      "  muster plan run.json --workers 8\n");
  describeTraining(line, options);
  if (!readOptions(line, call)) return 0;
  const RunFile run = readTraining(line, call, options);
  return sayErrors(asOptions, [&] {
    auto prepared = detail::prepareRun(run, options.nodes, [&](const PreparedRun& before) {
      pathsOf(call.file, before.run, before.resumed.file).check();
    });
    printResult(planText(prepared));
    if (prepared.run.training.nodes != "elastic")
      detail::requireOwnCheckpoints(prepared.run, prepared.resumed.file);
    return 0;
  });
}

int strategies(const Call& call) {
  std::int64_t workers = 2;
  CommandLine line(
      "Lists the strategies that training.strategy may name, with their options and defaults.\n");
  line.group("Options");
  line.add("workers", workers, "N", "some defaults depend on them", between(1, 1024));
  if (!readOptions(line, call)) return 0;
  printResult(describeStrategies(static_cast<int>(workers)));
  return 0;
}

int schema(const Call& call) {
  bool markdown = false;
  CommandLine line(
      "Prints the JSON Schema of run files, for editors that complete and check them, or all fields with\n"
      "their values, defaults and descriptions as a page.\n\n"
      "  muster schema > run.schema.json\n"
      "  muster schema --markdown > run_file.md\n");
  line.group("Options");
  line.flag("markdown", markdown, "print a page in Markdown instead");
  if (!readOptions(line, call)) return 0;
  printResult(markdown ? detail::runFilePage() : runFileSchema());
  return 0;
}

}  // namespace program
