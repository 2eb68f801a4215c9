// Trains LeNet on several devices by hand, as MXNet's "multi-GPU from scratch" does: every batch is split
// among the devices, each computes the gradients of its part with its own copy of the parameters, the
// gradients are summed over the devices, and each takes the same step with the sum. There is no model class
// and no trainer: begin with `trainBatch`. The network, of operations alone, is in lenet.h.

#include <fmt/format.h>

#include <deque>
#include <future>
#include <map>
#include <string>
#include <vector>

#include "lenet.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/io/safetensors.h"
#include "muster/core/ops/update.h"
#include "muster/datasets/generated_digits.h"
#include "muster/datasets/mnist.h"
#include "muster/parallel/exchange/all_reduce.h"
#include "muster/parallel/split_and_load.h"
#include "options.h"

using namespace muster;
using example::LeNet, example::Tensors, example::kParameters, example::kParameterNames;

namespace {

constexpr float kLearningRate = 0.2f;

/// One device: its copies of parameters and gradients, and LeNet for each number of examples that it gets.
struct Replica {
  Replica(const Tensors& initial, Device device)
      : context(device), parameters(copyTo(initial, device)), gradients(copyTo(initial, device)) {}
  LeNet& network(std::int64_t n) { return networks.try_emplace(n, n, context).first->second; }
  void clearGradients() {
    for (Tensor& gradient : gradients) setZero(gradient, context);
    context.synchronize();
  }

  Context context;
  Tensors parameters, gradients;  // [Parameter]
  std::map<std::int64_t, LeNet> networks;
};

/// Computes the gradients of the loss on this part of a batch, divided by the examples of the whole batch, so
/// that their sum over the devices is the gradient of the batch's mean loss. @return the part's summed loss.
double computeGradients(Replica& replica, const Batch& part, std::int64_t examples) {
  const ContextScope scope(replica.context);
  LeNet& network = replica.network(part.examples());
  network.forward(part.features[0].value, replica.parameters);
  const double sum = network.backward(part.labels[0].value, examples, replica.parameters, replica.gradients);
  replica.context.synchronize();  // a GPU's work is only enqueued, and the gradients are read next
  return sum;
}

/// One step on all devices, equal to one device's on the whole batch, to rounding. @return the summed loss.
double trainBatch(const Batch& batch, std::deque<Replica>& replicas) {
  std::vector<Device> devices;
  for (const Replica& replica : replicas) devices.push_back(replica.context.device());

  const auto parts = splitAndLoad(batch, devices, /*evenSplit=*/false);
  std::vector<std::future<double>> losses;
  for (std::size_t d = 0; d < parts.size(); ++d)
    losses.push_back(std::async(std::launch::async, computeGradients, std::ref(replicas[d]),
                                std::cref(parts[d]), batch.examples()));
  double sum = 0;
  for (auto& loss : losses) sum += loss.get();
  for (std::size_t d = parts.size(); d < replicas.size(); ++d)  // fewer examples than devices
    replicas[d].clearGradients();

  for (std::size_t p = 0; p < kParameters; ++p) {
    Tensors gradients;  // [device]
    for (const Replica& replica : replicas) gradients.push_back(replica.gradients[p]);
    allReduce(gradients, replicas[0].context);  // now each device has the sum
  }
  replicas[0].context.synchronize();
  for (Replica& replica : replicas)
    for (std::size_t p = 0; p < kParameters; ++p)
      updateSgd(replica.parameters[p], replica.gradients[p], kLearningRate, replica.context);
  return sum;
}

/// Tests the first device's parameters, which all devices have.
double accuracy(Replica& replica, DataSetIterator& data) {
  const ContextScope scope(replica.context);
  Evaluation evaluation(10);
  data.reset(0);
  for (Batch batch; data.next(batch);) {
    const Tensor images = copyTo(batch.features[0].value, replica.context.device());
    const Tensor& logits = replica.network(batch.examples()).forward(images, replica.parameters);
    replica.context.synchronize();
    evaluation.add(copyTo(logits, Device::cpu()), batch.labels[0].value);
  }
  return evaluation.accuracy();
}

struct Options {
  std::string device = "cpu", data = "mnist", model = "lenet.safetensors";
  std::int64_t devices = 2, batch = 256, epochs = 5, examples = 60'000, seed = 123;
};

std::unique_ptr<DataSetIterator> digits(const Options& o, bool train) {
  require(o.data == "mnist" || o.data == "generated", "--data must be mnist or generated, got {}", o.data);
  if (o.data == "generated")
    return std::make_unique<GeneratedDigitsIterator>(o.batch, o.examples, /*seed=*/20, train);
  return std::make_unique<MnistDataSetIterator>(o.batch, train, /*seed=*/123,
                                                DataOptions{.limit = o.examples});
}

void run(const Options& o) {
  const auto listed = Device::parseList(o.device);
  const auto train = digits(o, true), test = digits(o, false);
  const Tensors initial = example::initialParameters(static_cast<std::uint64_t>(o.seed));
  std::deque<Replica> replicas;  // networks refer to their contexts, which a deque never moves
  for (std::size_t d = 0; d < static_cast<std::size_t>(o.devices); ++d)
    replicas.emplace_back(initial, listed[d % listed.size()]);

  for (std::int64_t epoch = 0; epoch < o.epochs; ++epoch) {
    double sum = 0;
    train->reset(epoch);
    for (Batch batch; train->next(batch);) sum += trainBatch(batch, replicas);
    fmt::print("epoch {}/{}: loss {:.4f}, accuracy {:.4f}\n", epoch + 1, o.epochs,
               sum / static_cast<double>(*train->examples()), accuracy(replicas[0], *test));
  }
  Safetensors file;
  for (std::size_t p = 0; p < kParameters; ++p)
    file.add(kParameterNames[p], copyTo(replicas[0].parameters[p], Device::cpu()));
  writeSafetensors(o.model, file);
  fmt::print("saved: {}\n", o.model);
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  return example::runExample(
      argc, argv,
      "Trains LeNet on several devices by hand. More devices give the same numbers, except for rounding;\n"
      "on the CPU each is a thread. Two GPUs: --device cuda:0,cuda:1",
      {{"devices", &o.devices, "replicas that share each batch; replica d is on device d mod D of --device"},
       {"device", &o.device, "cpu, or GPUs, as in cuda:0,cuda:1"},
       {"data", &o.data, "mnist, or generated: digits that the program draws"},
       {"examples", &o.examples, "at most so many, to train and to test with"},
       {"batch", &o.batch, "examples per step, over all devices"},
       {"epochs", &o.epochs, "passes over the data"},
       {"seed", &o.seed, "of the first weights"},
       {"model", &o.model, "the trained parameters, in the safetensors format"}},
      [&] { run(o); });
}
