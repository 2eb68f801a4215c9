#include "muster/parallel/data_parallel/data_parallel.h"

#include <algorithm>
#include <cmath>

#include "muster/core/base/error.h"
#include "muster/core/ops/accumulate.h"
#include "muster/core/ops/axpy.h"
#include "muster/parallel/data_parallel/replica_thread.h"
#include "muster/parallel/exchange/exchange.h"
#include "muster/parallel/runtime/replica_check.h"

namespace muster {
namespace {

constexpr int kMostThreads = 1024;
constexpr std::int64_t kLine = 16;  // elements: slices of the gradients do not share a cache line

using PartOf = Part ReplicaThread::*;
using TensorOf = Tensor ReplicaThread::*;

void checkOptions(const std::vector<Device>& devices, int dim, const DataParallelOptions& options) {
  require(!devices.empty(), "data parallel: there are no devices");
  require(dim >= 0 && dim < Shape::kMaxRank, "data parallel: dim must be between 0 and {}, got {}",
          Shape::kMaxRank - 1, dim);
  require(options.threadsPerReplica >= 1 && options.threadsPerReplica <= kMostThreads,
          "data parallel: threadsPerReplica must be between 1 and {}, got {}", kMostThreads,
          options.threadsPerReplica);
  const auto there = availableDevices();  // what is not fails where a replica starts there
  for (const Device device : devices)
    if (std::ranges::find(there, device) != there.end() && !hasMathMode(device, options.mathMode))
      throw InvalidArgument(
          fmt::format("data parallel: mathMode: {} has no {}", device.toString(), nameOf(*options.mathMode)));
}

/// Tasks refer to what lies on the caller's stack, so it waits for them whatever happens.
struct AwaitAll {
  std::vector<TaskEnd>& ends;
  ~AwaitAll() {
    for (auto& end : ends)
      if (end.valid()) end.wait();
  }
};

bool isPeerFailure(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const PeerFailure&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

struct DataParallel::Impl {
  Impl(Model& m, const std::vector<Device>& devices, int d, const DataParallelOptions& options);

  using Task = std::function<void(ReplicaThread&)>;
  /// Runs `task` for the first `count` replicas, each in its thread, and waits for all of them.
  /// @throws TrainingError with `problem`, naming the first replica that threw.
  void run(std::size_t count, std::string_view problem, const Task& task);
  /// The same for a part of a pass, in which the replicas' layers may wait for each other.
  void runPass(std::size_t count, std::string_view problem, const Task& task);
  /// What `call` throws becomes a TrainingError that names the replica.
  template <typename Call>
  void inNameOf(const ReplicaThread& replica, std::string_view problem, Call call);

  void makeReplicas(const Tensor& input);
  void checkCopies();
  void checkInput(const Tensor& input) const;
  static void requireOnCpu(const Tensor& tensor, std::string_view what);
  void checkGradOutput(const Tensor& gradOutput) const;
  /// What the replicas' shards make together along the dimension; each one's place goes to `part`.
  void join(std::size_t count, TensorOf shard, PartOf part, std::string_view what, Tensor& whole);
  void forward(const Tensor& input, Tensor& output);
  void backward(const Tensor& gradOutput, Tensor* gradInput);
  void addSlice(ReplicaThread& replica);
  void addAll();
  /// The user's model has other parameters or statistics now.
  void setChanged();
  void takeStatistics();

  Model& model;
  const int dim;
  bool made = false;   // the replicas
  ModelBlocks blocks;  // of the user's model, once they are made
  bool train = true;
  std::int64_t pass = 0;   // of training
  std::size_t active = 0;  // replicas that took part in the last forward; 0 where there was none
  Shape outputShape;       // of the last forward
  DType outputType = DType::Float32;
  PeerSums exchange;                                     // of the replicas in a pass
  std::vector<std::unique_ptr<ReplicaThread>> replicas;  // last: threads end before what they use
};

DataParallel::Impl::Impl(Model& m, const std::vector<Device>& devices, int d,
                         const DataParallelOptions& options)
    : model(m), dim(d), exchange(static_cast<int>(devices.size())) {
  checkOptions(devices, dim, options);
  const auto placements = placeWorkers(static_cast<int>(devices.size()), devices, options.threadsPerReplica,
                                       options.pinThreads, CpuShare::ofProcess());
  for (const auto& placement : placements.workers)
    replicas.push_back(
        std::make_unique<ReplicaThread>(static_cast<int>(replicas.size()), placement, exchange));
  run(replicas.size(), "could not be started", [&](ReplicaThread& replica) {
    if (options.init) options.init(replica.index);
    replica.context = std::make_unique<Context>(replica.placement.device,
                                                ContextOptions{.threads = options.threadsPerReplica,
                                                               .cores = replica.placement.cores,
                                                               .mathMode = options.mathMode});
    replica.context->setPeers(&replica.peers);
  });
}

template <typename Call>
void DataParallel::Impl::inNameOf(const ReplicaThread& replica, std::string_view problem, Call call) {
  try {
    call();
  } catch (...) {
    const auto cause = std::current_exception();
    throw TrainingError(fmt::format("{} {}: {}", replica.name(), problem, describe(cause)), replica.index,
                        cause);
  }
}

void DataParallel::Impl::run(std::size_t count, std::string_view problem, const Task& task) {
  std::vector<TaskEnd> ends;
  {
    const AwaitAll all{ends};
    ends.reserve(count);
    for (std::size_t r = 0; r < count; ++r)
      ends.push_back(replicas[r]->thread.submit([&task, &replica = *replicas[r]] {
        task(replica);
        replica.context->synchronize();
      }));
  }
  std::vector<std::exception_ptr> failures;
  for (auto& end : ends) failures.push_back(end.get());
  // Who waited for one that failed comes last.
  for (const bool ofPeers : {false, true})
    for (std::size_t r = 0; r < count; ++r)
      if (failures[r] && isPeerFailure(failures[r]) == ofPeers)
        inNameOf(*replicas[r], problem, [&] { std::rethrow_exception(failures[r]); });
}

void DataParallel::Impl::runPass(std::size_t count, std::string_view problem, const Task& task) {
  exchange.begin(static_cast<int>(count));
  run(count, problem, [&](ReplicaThread& replica) {
    try {
      task(replica);
    } catch (...) {
      exchange.abort();
      throw;
    }
    exchange.leave(replica.index);
  });
}

void DataParallel::Impl::makeReplicas(const Tensor& input) {
  if (made) return;
  Batch first;
  first.features.push_back({"input", input});
  model.prepare(first);
  blocks = ModelBlocks(model);
  run(replicas.size(), "could not be made", [&](ReplicaThread& replica) {
    replica.model = model.replicate(*replica.context);
    require(replica.model != nullptr, "the model's replicate() returned nothing");
    replica.blocks = ModelBlocks(*replica.model);
    replica.bringGradients(blocks.gradients.device());
  });
  checkCopies();
  setChanged();
  made = true;
}

void DataParallel::Impl::checkCopies() {
  const auto blocksOf = [](Model& some) {
    std::vector<StateBlock*> all;
    for (auto& block : some.blocks()) all.push_back(&block);
    return all;
  };
  for (const auto& replica : replicas)
    inNameOf(*replica, "could not be made", [&] {
      requireCopy(blocksOf(*replica->model), blocksOf(model), "the model's");
      for (int other = 0; other < replica->index; ++other)
        requireCopy(blocksOf(*replica->model), blocksOf(*replicas[static_cast<std::size_t>(other)]->model),
                    fmt::format("replica {}'s", other));
    });
}

void DataParallel::Impl::checkInput(const Tensor& input) const {
  if (!input.defined() || input.layout() != Layout::RowMajor || input.shape().rank() <= dim)
    throw InvalidArgument(fmt::format(
        "data parallel: the input is {}; it must be row-major and have a dimension {} to be cut along",
        input.toString(), dim));
  if (input.shape()[dim] == 0)
    throw InvalidArgument(
        fmt::format("data parallel: the input {} is empty along dimension {}", input.toString(), dim));
  requireOnCpu(input, "input");
}

void DataParallel::Impl::requireOnCpu(const Tensor& tensor, std::string_view what) {
  if (!tensor.device().isCpu())
    throw InvalidArgument(fmt::format(
        "data parallel: the {} is {}; it must lie on the CPU, from where each replica takes its part", what,
        tensor.toString()));
}

void DataParallel::Impl::checkGradOutput(const Tensor& gradOutput) const {
  require(active > 0, "data parallel: backward() needs a forward() that went well before it");
  if (!gradOutput.defined() || gradOutput.layout() != Layout::RowMajor || gradOutput.shape() != outputShape ||
      gradOutput.dtype() != outputType)
    throw InvalidArgument(fmt::format("data parallel: gradOutput is {}, expected {} {} as the output",
                                      gradOutput.toString(), toString(outputType), outputShape.toString()));
  requireOnCpu(gradOutput, "gradOutput");
}

void DataParallel::Impl::join(std::size_t count, TensorOf shard, PartOf part, std::string_view what,
                              Tensor& whole) {
  const Tensor& first = (*replicas[0]).*shard;
  std::int64_t size = 0;
  for (std::size_t r = 0; r < count; ++r) {
    auto& replica = *replicas[r];
    const Tensor& own = replica.*shard;
    if (!own.defined() || own.layout() != Layout::RowMajor || own.shape().rank() <= dim)
      throw InvalidArgument(
          fmt::format("data parallel: the {} of {} is {}; it must be row-major and have a dimension {}", what,
                      replica.name(), own.toString(), dim));
    if (own.dtype() != first.dtype() || withSize(own.shape(), dim, 0) != withSize(first.shape(), dim, 0))
      throw InvalidArgument(fmt::format(
          "data parallel: the {} of {} is {}, that of replica 0 {}; they cannot be put together along "
          "dimension {}",
          what, replica.name(), own.toString(), first.toString(), dim));
    replica.*part = {size, own.shape()[dim]};
    size += own.shape()[dim];
  }
  whole.resize(withSize(first.shape(), dim, size), first.dtype());
}

void DataParallel::Impl::forward(const Tensor& input, Tensor& output) {
  active = 0;  // a pass that fails leaves nothing for backward
  checkInput(input);
  makeReplicas(input);
  model.context().synchronize();
  const auto parts = splitEvenly(input.shape()[dim], replicas.size());
  runPass(parts.size(), "failed in forward", [&](ReplicaThread& replica) {
    replica.load(blocks, train);
    replica.inputPart = parts[static_cast<std::size_t>(replica.index)];
    scatterPart(input, dim, replica.inputPart, replica.input, *replica.context);
    replica.model->forward(replica.input, replica.output,
                           {.training = train, .call = pass, .firstExample = replica.inputPart.begin});
  });
  join(parts.size(), &ReplicaThread::output, &ReplicaThread::outputPart, "output", output);
  run(parts.size(), "failed in gathering the output", [&](ReplicaThread& replica) {
    gatherPart(replica.output, dim, replica.outputPart, output, *replica.context);
  });
  outputShape = output.shape();
  outputType = output.dtype();
  if (train) {
    takeStatistics();
    ++pass;
  }
  active = parts.size();
}

void DataParallel::Impl::backward(const Tensor& gradOutput, Tensor* gradInput) {
  checkGradOutput(gradOutput);
  runPass(active, "failed in backward", [&](ReplicaThread& replica) {
    scatterPart(gradOutput, dim, replica.outputPart, replica.gradOutput, *replica.context);
    replica.model->backward(replica.gradOutput, gradInput ? &replica.gradInput : nullptr);
    if (gradInput && replica.gradInput.shape() != replica.input.shape())
      throw InvalidArgument(fmt::format("its gradInput is {}, its input {}", replica.gradInput.toString(),
                                        replica.input.toString()));
  });
  if (gradInput) join(active, &ReplicaThread::gradInput, &ReplicaThread::inputPart, "gradInput", *gradInput);
  const Device device = blocks.gradients.device();
  const bool onOneCpu = device.isCpu() && std::ranges::all_of(replicas, [](const auto& replica) {
                          return replica->placement.device.isCpu();
                        });
  run(active, "failed in adding up the gradients", [&](ReplicaThread& replica) {
    if (gradInput) gatherPart(replica.gradInput, dim, replica.inputPart, *gradInput, *replica.context);
    if (onOneCpu) return addSlice(replica);
    replica.bringGradients(device);
  });
  if (onOneCpu) return;
  model.context().synchronize();
  if (!device.isCpu()) return addAll();
  run(active, "failed in adding up the gradients", [&](ReplicaThread& replica) { addSlice(replica); });
}

/// On a GPU one call adds them up.
void DataParallel::Impl::addAll() {
  std::vector<Tensor> terms{blocks.gradients};
  for (std::size_t r = 0; r < active; ++r) terms.push_back(replicas[r]->gradientsThere);
  sum(terms, blocks.gradients, model.context());
  model.context().synchronize();
}

void DataParallel::Impl::addSlice(ReplicaThread& replica) {
  const Slice slice = sliceOf(blocks.gradients.elements(), replica.index, static_cast<int>(active));
  if (slice.begin == slice.end) return;
  const auto partOf = [&](const Tensor& gradients) {
    return gradients.slice(slice.begin, {slice.end - slice.begin});
  };
  Tensor total = partOf(blocks.gradients);
  std::vector<Tensor> terms{total};
  for (std::size_t r = 0; r < active; ++r) terms.push_back(partOf(replicas[r]->gradientsThere));
  const ContextScope scope(*replica.context);
  sum(terms, total, *replica.context);
}

void DataParallel::Impl::setChanged() {
  for (const auto& replica : replicas) replica->stale = true;
}

void DataParallel::Impl::takeStatistics() {
  if (blocks.statistics.empty()) return;
  for (std::size_t b = 0; b < blocks.statistics.size(); ++b)
    copy(replicas[0]->blocks.statistics[b], blocks.statistics[b]);
}

DataParallel::DataParallel(Model& model, const std::vector<Device>& devices, int dim,
                           const DataParallelOptions& options)
    : impl_(std::make_unique<Impl>(model, devices, dim, options)) {}

DataParallel::~DataParallel() = default;
DataParallel::DataParallel(DataParallel&&) noexcept = default;
DataParallel& DataParallel::operator=(DataParallel&&) noexcept = default;

Tensor DataParallel::forward(const Tensor& input) {
  Tensor output;
  impl_->forward(input, output);
  return output;
}

void DataParallel::forward(const Tensor& input, Tensor& output) {
  impl_->forward(input, output);
}

Tensor DataParallel::backward(const Tensor& gradOutput) {
  Tensor gradInput;
  impl_->backward(gradOutput, &gradInput);
  return gradInput;
}

void DataParallel::backward(const Tensor& gradOutput, Tensor* gradInput) {
  impl_->backward(gradOutput, gradInput);
}

void DataParallel::zeroGradients() {
  for (auto& block : impl_->model.blocks())
    if (block.kind == BlockKind::Gradients) setZero(block.values, impl_->model.context());
}

void DataParallel::updateParameters(double learningRate) {
  require(std::isfinite(learningRate), "data parallel: the learning rate is {}", learningRate);
  Model& model = impl_->model;
  auto& parameters = model.block(BlockKind::Parameters);
  const auto& gradients = model.block(BlockKind::Gradients);
  const ContextScope scope(model.context());
  for (const auto& segment : parameters.segments->segments) {
    if (segment.frozen) continue;
    Tensor values = parameters.segment(segment);
    axpy(-learningRate * segment.learningRateScale, gradients.segment(segment), values, model.context());
  }
  impl_->setChanged();
}

void DataParallel::syncParameters() {
  if (!impl_->made) return;
  impl_->setChanged();
  impl_->run(impl_->replicas.size(), "could not take the parameters",
             [&](ReplicaThread& replica) { replica.load(impl_->blocks, false); });
}

void DataParallel::training() {
  impl_->train = true;
}

void DataParallel::evaluate() {
  impl_->train = false;
}

std::vector<ReplicaShapes> DataParallel::shapes() const {
  std::vector<ReplicaShapes> shapes;
  for (std::size_t r = 0; r < impl_->active; ++r) {
    const auto& replica = *impl_->replicas[r];
    shapes.push_back(
        {replica.index, replica.placement.device, replica.input.shape(), replica.output.shape()});
  }
  return shapes;
}

}  // namespace muster
