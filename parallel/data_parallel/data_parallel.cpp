#include "muster/parallel/data_parallel/data_parallel.h"

#include <algorithm>
#include <cmath>

#include "muster/core/base/owner_process.h"
#include "muster/core/nn/network.h"
#include "muster/core/ops/axpy.h"
#include "muster/core/optim/finite_gradient.h"
#include "muster/parallel/data_parallel/replica.h"

namespace muster {
namespace {

constexpr int kMostThreads = 1024;

void checkOptions(const std::vector<Device>& devices, int dim, const DataParallelOptions& options) {
  require(!devices.empty(), "data parallel: there are no devices");
  require(dim >= 0 && dim < Shape::kMaxRank, "data parallel: dim must be between 0 and {}, got {}",
          Shape::kMaxRank - 1, dim);
  require(options.threadsPerReplica >= 1 && options.threadsPerReplica <= kMostThreads,
          "data parallel: threadsPerReplica must be between 1 and {}, got {}", kMostThreads,
          options.threadsPerReplica);
  const auto there = availableDevices();  // a replica on a missing device fails when it starts
  for (const Device device : devices)
    if (std::ranges::find(there, device) != there.end())
      requireMathMode(device, options.mathMode, "data parallel: ");
}

}  // namespace

struct DataParallel::Impl {
  Impl(Model& m, const std::vector<Device>& devices, int d, const DataParallelOptions& options)
      : model(m),
        usersDim(d),
        dim(dynamic_cast<const Network*>(&m) ? 0 : d),
        sums(static_cast<int>(devices.size())) {
    checkOptions(devices, usersDim, options);
    placements = placeAndClaim(static_cast<int>(devices.size()), devices, options.threadsPerReplica,
                               options.pinThreads, options.mathMode);
    for (const auto& placement : placements.workers)
      replicas.push_back(std::make_unique<Replica>(static_cast<int>(replicas.size()), placement,
                                                   options.threadsPerReplica, sums));
    runOnAll(replicas, "could not be started", [&](Replica& replica) {
      if (options.init) options.init(replica.thread.index());
      replica.thread.makeContext();
      replica.thread.context().setPeers(&replica.peers);
    });
  }

  /// The first `count` replicas, which share a pass.
  Replicas first(std::size_t count) const { return Replicas(replicas).first(count); }
  /// Runs a part of a pass, in which the replicas' layers may wait for each other.
  void runPass(std::size_t count, std::string_view problem, const std::function<void(Replica&)>& task) {
    sums.begin(static_cast<int>(count));
    runOnAll(first(count), problem, [&](Replica& replica) {
      try {
        task(replica);
      } catch (...) {
        sums.abort();
        throw;
      }
      sums.leave(replica.thread.index());
    });
  }

  void makeReplicas(const Tensor& input) {
    if (made) return;
    Batch batch;
    batch.features.push_back({"input", input});
    model.prepare(batch);
    blocks = ModelBlocks(model);
    runOnAll(replicas, "could not be made", [&](Replica& replica) {
      replica.thread.makeReplica(model);
      replica.blocks = ModelBlocks(replica.thread.replica());
      replica.bringGradients(blocks.gradients.device());
    });
    std::vector<ReplicaThread*> threads;
    for (const auto& replica : replicas) threads.push_back(&replica->thread);
    requireCopies(threads, model, blocksOf);
    setChanged();
    made = true;
  }
  void checkInput(const Tensor& input) const {
    if (!input.defined() || input.layout() != Layout::RowMajor || input.shape().rank() <= usersDim)
      throw InvalidArgument(fmt::format(
          "data parallel: the input is {}; it must be row-major and have a dimension {} to be split along",
          input.toString(), usersDim));
    if (input.shape()[usersDim] == 0)
      throw InvalidArgument(
          fmt::format("data parallel: the input {} is empty along dimension {}", input.toString(), usersDim));
    requireOnCpu(input, "input");
  }
  static void requireOnCpu(const Tensor& tensor, std::string_view what) {
    if (!tensor.device().isCpu())
      throw InvalidArgument(fmt::format(
          "data parallel: the {} is {}; it must be on the CPU; each replica copies its part from there", what,
          tensor.toString()));
  }
  void checkGradOutput(const Tensor& gradOutput) const {
    require(active > 0, "data parallel: backward() needs a successful forward() before it");
    if (!gradOutput.defined() || gradOutput.layout() != Layout::RowMajor ||
        gradOutput.shape() != outputShape || gradOutput.dtype() != outputType)
      throw InvalidArgument(fmt::format("data parallel: gradOutput is {}, expected {} {} as the output",
                                        gradOutput.toString(), toString(outputType), outputShape.toString()));
    requireOnCpu(gradOutput, "gradOutput");
  }
  /// A network's output [N, C] has no dimension in front of the examples.
  void forward(const Tensor& input, Tensor& output) {
    model.requireNotTrainedElsewhere("data parallel: forward");
    active = 0;  // so that `backward` is refused after a failure
    checkInput(input);
    if (dim == usersDim) return forwardSplit(input, output);
    moveExamples(input, usersDim, 0, movedInput);
    forwardSplit(movedInput, movedOutput);
    const int rank = movedOutput.shape().rank();
    outputDim = rank > 2 && rank > usersDim ? usersDim : 0;
    moveExamples(movedOutput, 0, outputDim, output);
    outputShape = output.shape();
  }
  void backward(const Tensor& gradOutput, Tensor* gradInput) {
    checkGradOutput(gradOutput);
    if (dim == usersDim) return backwardSplit(gradOutput, gradInput);
    moveExamples(gradOutput, outputDim, 0, movedGradOutput);
    backwardSplit(movedGradOutput, gradInput ? &movedGradInput : nullptr);
    if (gradInput) moveExamples(movedGradInput, 0, usersDim, *gradInput);
  }
  // With tensors that are split along `dim`.
  void forwardSplit(const Tensor& input, Tensor& output) {
    makeReplicas(input);
    model.context().synchronize();
    const auto parts = splitEvenly(input.shape()[dim], replicas.size());
    runPass(parts.size(), "failed in forward", [&](Replica& replica) {
      replica.load(blocks, train);
      replica.inputPart = parts[static_cast<std::size_t>(replica.thread.index())];
      scatterPart(input, dim, replica.inputPart, replica.input, replica.thread.context());
      replica.thread.replica().forward(
          replica.input, replica.output,
          {.training = train, .call = pass, .firstExample = replica.inputPart.begin});
    });
    joinShards(first(parts.size()), dim, &Replica::output, &Replica::outputPart, "output", output);
    runOnAll(first(parts.size()), "failed in gathering the output", [&](Replica& replica) {
      gatherPart(replica.output, dim, replica.outputPart, output, replica.thread.context());
    });
    outputShape = output.shape();
    outputType = output.dtype();
    if (train) {
      for (std::size_t b = 0; b < blocks.statistics.size(); ++b)
        copy(replicas[0]->blocks.statistics[b], blocks.statistics[b]);
      ++pass;
    }
    active = parts.size();
  }
  void backwardSplit(const Tensor& gradOutput, Tensor* gradInput) {
    runPass(active, "failed in backward", [&](Replica& replica) {
      scatterPart(gradOutput, dim, replica.outputPart, replica.gradOutput, replica.thread.context());
      replica.thread.replica().backward(replica.gradOutput, gradInput ? &replica.gradInput : nullptr);
      if (gradInput && replica.gradInput.shape() != replica.input.shape())
        throw InvalidArgument(fmt::format("its gradInput is {}, its input {}", replica.gradInput.toString(),
                                          replica.input.toString()));
    });
    if (gradInput) {
      joinShards(first(active), dim, &Replica::gradInput, &Replica::inputPart, "gradInput", *gradInput);
      runOnAll(first(active), "failed in gathering gradInput", [&](Replica& replica) {
        gatherPart(replica.gradInput, dim, replica.inputPart, *gradInput, replica.thread.context());
      });
    }
    addGradients(first(active), blocks.gradients, model.context());
  }
  /// Records that the user's model has new parameters or statistics.
  void setChanged() {
    for (const auto& replica : replicas) replica->stale = true;
  }

  Model& model;
  const int usersDim;  // of the examples in the user's tensors
  const int dim;       // along which they are split: a network's examples come first
  int outputDim = 0;   // of the examples in the user's output
  Tensor movedInput, movedOutput, movedGradOutput, movedGradInput;  // with the examples first
  const OwnerProcess owner;
  Placements placements;
  bool made = false;   // whether the replicas are made
  ModelBlocks blocks;  // of the user's model, once the replicas are made
  bool train = true;
  std::int64_t pass = 0;   // number of training passes
  std::size_t active = 0;  // replicas in the last forward; 0: none, or it failed
  Shape outputShape;       // of the last forward
  DType outputType = DType::Float32;
  PeerSums sums;                                   // for the replicas in a pass
  std::vector<std::unique_ptr<Replica>> replicas;  // last: destroyed before the members that threads use
};

DataParallel::DataParallel(Model& model, const std::vector<Device>& devices, int dim,
                           const DataParallelOptions& options)
    : impl_(std::make_unique<Impl>(model, devices, dim, options)) {}

DataParallel::~DataParallel() {
  abandonInChild(impl_);
}
DataParallel::DataParallel(DataParallel&&) noexcept = default;
DataParallel& DataParallel::operator=(DataParallel&& other) noexcept {
  DataParallel replaced(std::move(other));
  std::swap(impl_, replaced.impl_);
  return *this;
}

Tensor DataParallel::forward(const Tensor& input) {
  Tensor output;
  usable(impl_, "data parallel").forward(input, output);
  return output;
}

void DataParallel::forward(const Tensor& input, Tensor& output) {
  usable(impl_, "data parallel").forward(input, output);
}

Tensor DataParallel::backward(const Tensor& gradOutput) {
  Tensor gradInput;
  usable(impl_, "data parallel").backward(gradOutput, &gradInput);
  return gradInput;
}

void DataParallel::backward(const Tensor& gradOutput, Tensor* gradInput) {
  usable(impl_, "data parallel").backward(gradOutput, gradInput);
}

void DataParallel::zeroGradients() {
  Model& model = usable(impl_, "data parallel").model;
  for (auto& block : model.blocks())
    if (block.kind == BlockKind::Gradients) setZero(block.values, model.context());
}

void DataParallel::updateParameters(double learningRate) {
  require(std::isfinite(learningRate) && learningRate >= 0,
          "data parallel: the learning rate must be finite and not negative, got {}", learningRate);
  Model& model = usable(impl_, "data parallel").model;
  model.requireNotTrainedElsewhere("data parallel: updateParameters");
  auto& parameters = model.block(BlockKind::Parameters);
  const auto& gradients = model.block(BlockKind::Gradients);
  const ContextScope scope(model.context());
  requireFiniteGradient(gradients);
  for (const auto& segment : parameters.segments->segments) {
    if (segment.frozen) continue;
    Tensor values = parameters.segment(segment);
    axpy(-learningRate * segment.learningRateScale, gradients.segment(segment), values, model.context());
  }
  impl_->setChanged();
}

void DataParallel::syncParameters() {
  Impl& impl = usable(impl_, "data parallel");
  if (!impl.made) return;
  impl.setChanged();
  runOnAll(impl.replicas, "could not take the parameters",
           [&](Replica& replica) { replica.load(impl.blocks, false); });
}

void DataParallel::training() {
  usable(impl_, "data parallel").train = true;
}

void DataParallel::evaluate() {
  usable(impl_, "data parallel").train = false;
}

std::vector<ReplicaShapes> DataParallel::shapes() const {
  std::vector<ReplicaShapes> shapes;
  const Impl& impl = usable(impl_, "data parallel");
  for (std::size_t r = 0; r < impl.active; ++r) {
    const auto& replica = *impl.replicas[r];
    shapes.push_back({replica.thread.index(), replica.thread.placement().device, replica.input.shape(),
                      replica.output.shape()});
  }
  return shapes;
}

}  // namespace muster
