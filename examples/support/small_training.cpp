#include "examples/support/small_training.h"

#include <algorithm>

#include "examples/support/command_line.h"
#include "examples/support/keep_network.h"
#include "examples/support/program.h"
#include "examples/support/training_interrupt.h"
#include "muster/core/base/plural.h"
#include "muster/core/io/output_path.h"

namespace example {

int runSmallTraining(int argc, const char* const* argv, std::string_view name, std::string_view introduction,
                     const std::function<int(const SmallTraining&)>& run) {
  return runProgram(name, [&] {
    SmallTraining o{.model = fmt::format("{}.safetensors", name)};
    std::ranges::replace(o.model, '_', '-');
    const auto text = fmt::format(
        "{}\nCtrl-C finishes the current step, averages, saves what was trained and exits with 130; a\n"
        "second one quits.\n",
        introduction);
    CommandLine line(text);
    line.group("Options");
    line.add("workers", o.workers, "N", "threads, each with a replica", between(1, 1024));
    line.add("epochs", o.epochs, "N", "passes over the data", between(1, 1'000'000));
    line.add("examples", o.examples, "N", "digits to train with, and as many to test with",
             between(1, 60'000));
    line.add("seed", o.seed, "N", "seed of the initial weights and of the order of the digits", atLeast(0));
    line.add("model", o.model, "FILE", "the trained parameters, in the safetensors format", fileName);
    if (!line.read(argc, argv)) return 0;
    muster::checkOutputFile(o.model);
    endOnInterrupt(kInterruptedBefore);
    return run(o);
  });
}

bool trainAndSave(const SmallTraining& options, muster::Model& model,
                  const std::function<void(const std::stop_token&)>& train,
                  const std::function<void(const std::filesystem::path&)>& save) {
  requireDiskRoom(options.model, savedBytes(model));
  TrainingInterrupt interrupt;
  const auto saveTrained = [&](bool failed) {
    if (interrupt.requested())
      fmt::print("interrupted, with {} of {} finished\n", model.epoch(),
                 muster::plural(options.epochs, "epoch"));
    if (model.iteration() == 0) return fmt::print("ended before the first step: nothing was saved\n");
    writeHereOrElsewhere(options.model, save);
    if (failed || interrupt.requested()) fmt::print("saved: {}\n", options.model);
  };
  trainAndSave([&] { train(interrupt.token()); }, saveTrained, fmt::format("--seed {}", options.seed),
               {options.model, [&](const std::filesystem::path& file) {
                  if (model.iteration() > 0) save(file);
                  return model.iteration() > 0;
                }});
  interrupt.end(model.iteration() > 0);
  return !interrupt.requested();
}

}  // namespace example
