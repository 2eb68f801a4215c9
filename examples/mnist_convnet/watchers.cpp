#include "examples/mnist_convnet/watchers.h"

#include <chrono>
#include <filesystem>

#include "muster/core/io/output_path.h"
#include "muster/core/listeners/checkpoint_listener.h"

namespace example {

using namespace muster;

Watchers makeWatchers(const Options& options, DataSets& data, const Recipe& recipe) {
  Watchers watchers(options.nodes.nodes() > 1 || options.nodes.elastic());
  if (!options.quiet) options.watch.addProgress(watchers.all);
  if (options.testEvery > 0 || options.testIterations > 0) {
    watchers.tests = std::make_shared<EvaluationListener>(
        *data.test,
        EvaluationOptions{.everyEpochs = options.testEvery,
                          .everyIterations = options.testIterations,
                          .sink = options.quiet ? LineSink([](std::string_view) {}) : LineSink()});
    watchers.all.push_back(watchers.tests);
  }
  watchers.record = std::make_shared<EpochRecord>(watchers.tests);
  watchers.all.push_back(watchers.record);
  if (options.checkpointDirectory.empty()) return watchers;
  const auto minutes = std::chrono::duration<double, std::ratio<60>>(options.checkpointMinutes);
  watchers.all.push_back(std::make_shared<CheckpointListener>(
      CheckpointOptions{.directory = options.checkpointDirectory,
                        .everyEpochs = options.checkpointEvery,
                        .everyIterations = options.checkpointIterations,
                        .every = std::chrono::duration_cast<std::chrono::nanoseconds>(minutes),
                        .keepLast = options.keep,
                        .resumed = isSameFile(options.resume, options.checkpointDirectory),
                        .exclusive = !options.nodes.elastic(),
                        .notes = notesOf(recipe)}));
  return watchers;
}

std::vector<HyperParameter> hyperParameters(const Options& options) {
  auto all = options.hyperParameters();
  all.emplace_back("batch", static_cast<double>(options.batch));
  all.emplace_back("updater", options.updater);
  all.emplace_back("learning rate", options.learningRate);
  all.emplace_back("l2", options.l2);
  all.emplace_back("seed", static_cast<double>(options.seed));
  return all;
}

}  // namespace example
