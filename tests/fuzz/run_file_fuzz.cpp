// Run files of the program muster: a run that is read is written back identically, and its rule can be
// created.
#include "muster/parallel/run/run_file.h"

#include <boost/json/value.hpp>

#include "muster/core/base/error.h"
#include "muster/core/nn/layers.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/parallel/run/detail/run_settings.h"
#include "tests/fuzz/json_mutation.h"
#include "tests/fuzz/target.h"

namespace muster::fuzz {
namespace {

void run(ByteSpan bytes) {
  muster::RunFile read;
  try {
    read = muster::RunFile::parse(textOf(bytes));
  } catch (const InvalidArgument& error) {
    return expectReadable(error.what());
  } catch (const DeviceUnavailable& error) {
    return expectReadable(error.what());
  }
  read.makeStrategy(1);
  const std::string text = read.toJson();
  expect(muster::RunFile::parse(text).toJson() == text, "a run that was read and written is another one");
  muster::detail::decisiveFields(read);
}

std::vector<Bytes> seeds() {
  const MultiLayerConfiguration network{.inputShape = {2},
                                        .layers = {Dense{.units = 3}, Output{.classes = 2}}};
  std::vector<Bytes> all;
  for (const char* const type : {"csv", "idx", "mnist", "images", "generated"}) {
    muster::RunFile run;
    run.data = {.type = type,
                .trainImages = "i",
                .trainLabels = "l",
                .testImages = "i2",
                .testLabels = "l2",
                .train = "t",
                .test = "t2",
                .classWeights = {1, 2}};
    run.network = network.toJson();
    run.training.strategy = type == std::string_view("csv") ? "diloco" : "averaging";
    run.listeners.checkpoints = muster::RunCheckpoints{
        .directory = "c", .best = muster::RunMonitor{.monitor = Monitor::Loss, .mode = "min"}};
    run.listeners.earlyStopping =
        muster::RunEarlyStopping{.monitored = {.monitor = Monitor::Accuracy, .mode = "max"}};
    all.push_back(bytesOf(run.toJson()));
  }
  return all;
}

std::vector<boost::json::value> documents() {
  std::vector<boost::json::value> all;
  for (const auto& seed : seeds()) all.push_back(*jsonIn(textOf(seed)));
  return all;
}

void mutate(Bytes& bytes, Draw& draw) {
  static const Vocabulary vocabulary(documents());
  bytes = bytesOf(mutateJsonText(textOf(bytes), draw, vocabulary));
}

}  // namespace

const Target targets::run_file{"run_file", &run, &seeds, &mutate};

}  // namespace muster::fuzz
