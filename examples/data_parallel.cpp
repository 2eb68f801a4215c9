// DataParallel as in PyTorch's tutorial: a small model runs on several devices at once. The program prints
// the batch sizes inside and outside the replicas, then trains a regression with a hand-written loop.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "muster/core/base/random.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/core/ops/loss.h"
#include "muster/parallel/data_parallel/data_parallel.h"
#include "options.h"

using namespace muster;

namespace {

constexpr std::int64_t kExamples = 100, kInputs = 5, kOutputs = 2;
constexpr double kLearningRate = 0.1;
constexpr int kPasses = 6;

/// Inputs, and targets that are a linear function of them.
struct Data {
  Tensor inputs = Tensor::empty({kExamples, kInputs});
  Tensor targets = Tensor::empty({kExamples, kOutputs});
};

Data drawData() {
  Data data;
  const RandomStream input(1, "inputs"), weight(1, "weights");
  for (std::int64_t n = 0; n < kExamples; ++n) {
    float* x = data.inputs.data<float>() + n * kInputs;
    for (std::int64_t i = 0; i < kInputs; ++i)
      x[i] = static_cast<float>(input.normal(static_cast<std::uint64_t>(n * kInputs + i)));
    for (std::int64_t o = 0; o < kOutputs; ++o) {
      double sum = 0.5;
      for (std::int64_t i = 0; i < kInputs; ++i)
        sum += weight.normal(static_cast<std::uint64_t>(o * kInputs + i)) * x[i];
      data.targets.data<float>()[n * kOutputs + o] = static_cast<float>(sum);
    }
  }
  return data;
}

/// Calls use(inputs, targets) for each batch; the last may be smaller.
template <typename Use>
void forEachBatch(const Data& data, std::int64_t batch, Use use) {
  for (std::int64_t begin = 0; begin < kExamples; begin += batch) {
    const std::int64_t end = std::min(begin + batch, kExamples);
    use(data.inputs.rows(begin, end), data.targets.rows(begin, end));
  }
}

void printSizes(DataParallel& parallel, const Data& data, std::int64_t batch) {
  forEachBatch(data, batch, [&](const Tensor& inputs, const Tensor&) {
    const Tensor output = parallel.forward(inputs);
    for (const auto& inner : parallel.shapes())
      fmt::print("  replica {} on {}: input {}, output {}\n", inner.replica, inner.device.toString(),
                 inner.input.toString(), inner.output.toString());
    fmt::print("outside: input {}, output {}\n", inputs.shape().toString(), output.shape().toString());
  });
}

/// One epoch. @return the mean loss of its batches.
double trainPass(DataParallel& parallel, MultiLayerNetwork& model, const Data& data, std::int64_t batch) {
  double sum = 0;
  Tensor output, gradOutput;
  forEachBatch(data, batch, [&](const Tensor& inputs, const Tensor& targets) {
    parallel.zeroGradients();
    parallel.forward(inputs, output);
    gradOutput.resize(output.shape(), DType::Float32);
    // This is the gradient of the whole batch's mean loss; the replicas' gradients are summed.
    sum += loss(Loss::MeanSquaredError, output, targets, {}, gradOutput, 0, model.context()).sum;
    parallel.backward(gradOutput, nullptr);  // no gradient of the inputs
    parallel.updateParameters(kLearningRate);
  });
  return sum / kExamples;
}

void run(std::int64_t replicas, std::int64_t batch, const std::string& device) {
  const Data data = drawData();
  MultiLayerNetwork model({.seed = 1, .inputShape = {kInputs}, .layers = {Dense{.units = kOutputs}}});
  model.init();
  const auto listed = Device::parseList(device);
  std::vector<Device> devices;  // [replica]
  for (std::size_t r = 0; r < static_cast<std::size_t>(replicas); ++r)
    devices.push_back(listed[r % listed.size()]);
  DataParallel parallel(model, devices);

  fmt::print("{} examples in batches of {}, replicas: {}\n\n", kExamples, batch, replicas);
  printSizes(parallel, data, batch);
  fmt::print("\n");
  for (int pass = 1; pass <= kPasses; ++pass)
    fmt::print("pass {}: loss {:.6f}\n", pass, trainPass(parallel, model, data, batch));
  // The model holds the trained parameters: model.save("regression.safetensors") would keep them.
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t replicas = 3, batch = 30;
  std::string device = "cpu";
  return example::runExample(
      argc, argv,
      "Runs a small model on several devices at once: prints what each replica gets of a batch, then trains "
      "a\n"
      "regression by hand. Two GPUs: --device cuda:0,cuda:1",
      {{"replicas", &replicas, "of the model, a thread each; replica r is on device r mod D of --device"},
       {"device", &device, "cpu, or GPUs, as in cuda:0,cuda:1"},
       {"batch", &batch, "examples per batch, dealt out to the replicas"}},
      [&] { run(replicas, batch, device); });
}
