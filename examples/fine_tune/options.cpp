#include "examples/fine_tune/options.h"

#include <string_view>

namespace example {
namespace {

constexpr std::string_view kIntroduction =
    R"(Gives a ResNet-18 the weights of a file that PyTorch wrote, with torchvision's names, and a new head, trains the head
with several workers, and writes all as such a file again. To make one in Python:

  import safetensors.torch, torchvision
  safetensors.torch.save_file(torchvision.models.resnet18(weights="DEFAULT").state_dict(), "resnet18.safetensors")

  fine_tune --weights resnet18.safetensors --imagenet --data cifar10

Without --weights it makes a file by itself: a small network learns the digits 0 to 4. The new head then learns 5 to 9.

Ctrl-C finishes the current step, averages, saves what was trained and exits with 130; a second one quits. While it
still trains the small network to start from, that one is saved in --backbone, and --model and --json are not written.
)";

}  // namespace

std::optional<FineTuneOptions> readFineTuneOptions(int argc, const char* const* argv) {
  FineTuneOptions o;
  CommandLine line(kIntroduction);
  line.group("Options");
  line.add("weights", o.weights, "FILE", "ResNet-18's state dict in the safetensors format");
  line.add("trained-batch", o.trainedBatch, "N",
           "batch size with which the weights were trained, to convert running variances; 0: do not convert",
           atLeast(0));
  line.flag("imagenet", o.imagenet, "colours as torchvision's weights expect them");
  line.add("backbone-rate", o.backboneRate, "X", "factor of the learning rate outside the head; 0: frozen",
           notNegative);
  line.add("learning-rate", o.learningRate, "X", "learning rate of the head", positive);
  line.add("workers", o.workers, "N", "threads, each with a replica", between(1, 1024));
  line.add("epochs", o.epochs, "N", "passes over the data", between(1, 1'000'000));
  line.add("seed", o.seed, "N", "seed of the initial weights and of the order of the images", atLeast(0));
  line.add("model", o.model, "FILE", "save all weights there");
  line.add("json", o.json, "FILE", "write options, plan and the results of each epoch");
  line.add("backbone", o.backbone, "FILE",
           "without --weights: where to save the small network to start from");
  o.data.describe(line);
  if (!line.read(argc, argv)) return std::nullopt;
  o.data.check();
  muster::require(!o.weights.empty() || o.data.name == "generated",
                  "--data {} needs --weights: without them the program learns generated digits", o.data.name);
  return o;
}

}  // namespace example
