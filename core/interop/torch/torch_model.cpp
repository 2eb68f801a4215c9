#include "muster/core/interop/torch/torch_model.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/StreamGuard.h>
#include <torch/nn/module.h>

#include <fmt/ranges.h>

#include <mutex>
#include <optional>

#include "muster/core/base/error.h"
#include "muster/core/interop/torch/detail/module_tensors.h"

namespace muster {

using namespace detail;

namespace {

c10::ScalarType typeOf(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return at::kFloat;
    case DType::Float64:
      return at::kDouble;
    case DType::UInt8:
      return at::kByte;
    case DType::Int64:
      return at::kLong;
  }
  return at::kFloat;
}

c10::Device deviceOf(Device device) {
  return device.isCpu() ? c10::Device(c10::kCPU)
                        : c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device.index()));
}

/// A libtorch tensor in the same CPU memory; keeps that memory alive.
at::Tensor viewOf(const Tensor& tensor) {
  const auto sizes = tensor.shape().sizes();
  return at::from_blob(
      tensor.raw(), at::IntArrayRef(sizes.data(), sizes.size()), [tensor](void*) {},
      at::TensorOptions(typeOf(tensor.dtype())));
}

at::Tensor named(const std::vector<NamedTensor>& tensors, Device device, std::string_view what,
                 std::string_view name) {
  for (const auto& tensor : tensors)
    if (name.empty() || tensor.name == name) return viewOf(tensor.gathered()).to(deviceOf(device));
  throw InvalidArgument(name.empty() ? fmt::format("torch: the batch has no {}", what)
                                     : fmt::format("torch: the batch has no {} called {}", what, name));
}

/// While it lives, libtorch's operations on this thread use this number of threads. Setting the number also
/// sets that of threads that call libtorch for the first time. So the first of several that live leaves to
/// the others what the program had chosen, or the last one would leave a worker's number to the whole
/// program.
class TorchThreads {
 public:
  explicit TorchThreads(int threads) {
    const std::scoped_lock lock(mutex_);
    // Also makes libtorch set its default now instead of later.
    const int here = at::get_num_threads();
    if (alive_++ == 0) programs_ = here;
    before_ = programs_;
    at::set_num_threads(threads);
  }
  ~TorchThreads() {
    const std::scoped_lock lock(mutex_);
    --alive_;
    at::set_num_threads(before_);
  }
  TorchThreads(const TorchThreads&) = delete;
  TorchThreads& operator=(const TorchThreads&) = delete;

 private:
  static inline std::mutex mutex_;
  static inline int alive_ = 0, programs_ = 0;  // guarded by mutex_

  int before_ = 0;
};

/// Calls `work`; rethrows libtorch's errors as muster::Error, without their backtraces.
template <typename Work>
auto translated(Work work) {
  try {
    return work();
  } catch (const c10::Error& error) {
    throw Error(fmt::format("torch: {}", error.what_without_backtrace()));
  }
}

}  // namespace

at::Tensor TorchBatch::features(std::string_view name) const {
  return named(batch_->features, device_, "features", name);
}
at::Tensor TorchBatch::labels(std::string_view name) const {
  return named(batch_->labels, device_, "labels", name);
}
at::Tensor TorchBatch::mask(std::string_view name) const {
  for (const auto& mask : batch_->masks)
    if (mask.name == name) return viewOf(mask.gathered()).to(deviceOf(device_));
  return {};
}

struct TorchModel::Impl {
  Impl(detail::TorchProgram torchProgram, TorchModel& owner);

  void addBlocks();
  /// Adds a block for these tensors, which become views of it.
  void addBlock(const char* name, BlockKind kind, MergeRule rule,
                const std::vector<const TorchTensors*>& parts);
  void addGradients();
  /// @throws InvalidArgument naming a parameter or buffer that is no longer in its block.
  void requireInBlocks() const;
  /// The same, also for a parameter that the module did not have.
  void requirePlaces() const;
  void requireGradients() const;
  /// Calls `work`. On a GPU libtorch uses a stream of its own: `work` starts after all work enqueued on our
  /// streams and has finished on return.
  template <typename Work>
  void onDevice(Work&& work) const {
    if (!stream) return work();
    context.synchronize();
    const c10::StreamGuard guard(*stream);
    work();
    stream->synchronize();
  }

  Context& context;
  std::optional<c10::Stream> stream;  // on a GPU
  detail::TorchProgram program;
  std::shared_ptr<torch::nn::Module> module;
  std::vector<StateBlock> blocks;  // parameters, gradients, and statistics if there are any
  std::vector<TorchPlace> parameters, buffers;
  TorchTensors kept;
  std::size_t handles = 0;  // number of parameters that the module lists, repeated ones included
};

TorchModel::Impl::Impl(detail::TorchProgram torchProgram, TorchModel& owner)
    : context(owner.context()), program(std::move(torchProgram)) {
  const Device device = context.device();
  if (!device.isCpu()) {
    require(at::hasCUDA(), "torch: the model is to compute on {}, and this libtorch has no CUDA",
            device.toString());
    stream = c10::impl::VirtualGuardImpl(c10::kCUDA).getStreamFromGlobalPool(deviceOf(device));
  }
  static std::mutex mutex;  // all modules draw their values from libtorch's one generator
  const std::scoped_lock lock(mutex);
  module = program.make();
  require(module != nullptr, "torch: the factory returned no module");
  for (const auto& parameter : module->named_parameters())
    requireUsable(parameter.key(), parameter.value(), "parameter");
  for (const auto& buffer : module->named_buffers())
    if (buffer.value().defined() && buffer.value().is_floating_point())
      requireUsable(buffer.key(), buffer.value(), "buffer");
  onDevice([&] {
    if (!device.isCpu()) module->to(deviceOf(device));
    addBlocks();
  });
}

void TorchModel::Impl::addBlocks() {
  TorchTensors all;
  for (const auto& parameter : module->named_parameters()) all.add(parameter.key(), parameter.value());
  require(!all.empty(), "torch: the module has no parameters");
  handles = module->parameters().size();
  addBlock("parameters", BlockKind::Parameters, MergeRule::Average, {&all});
  addGradients();
  TorchBuffers sorted = sortedBuffers(*module);
  if (!sorted.means.empty())
    addBlock("moments", BlockKind::Statistics, MergeRule::Moments, {&sorted.means, &sorted.variances});
  if (!sorted.others.empty())
    addBlock("statistics", BlockKind::Statistics, MergeRule::Average, {&sorted.others});
  kept = std::move(sorted.kept);
}

void TorchModel::Impl::addBlock(const char* name, BlockKind kind, MergeRule rule,
                                const std::vector<const TorchTensors*>& parts) {
  const bool learned = kind == BlockKind::Parameters;
  const auto table = std::make_shared<SegmentTable>();
  for (const TorchTensors* part : parts)
    for (const auto& [key, tensor] : part->all()) {
      table->add({.name = key,
                  .shape = shapeOf(tensor),
                  .regularised = learned && tensor.dim() > 1,
                  .frozen = learned && !tensor.requires_grad()});
    }
  StateBlock block = StateBlock::zeros(name, kind, rule, table, DType::Float32, context.device());
  std::size_t segment = 0;
  for (const TorchTensors* part : parts)
    for (const auto& [key, tensor] : part->all()) {
      float* const data = block.values.data<float>() + table->segments[segment++].offset;
      TorchPlace place{.name = key,
                       .tensor = tensor,
                       .values = at::from_blob(data, tensor.sizes(), tensor.strides(), tensor.options())};
      const torch::NoGradGuard noGrad;
      place.values.copy_(tensor);
      place.tensor.set_data(place.values);
      (learned ? parameters : buffers).push_back(std::move(place));
    }
  blocks.push_back(std::move(block));
}

void TorchModel::Impl::addGradients() {
  const auto table = blocks.front().segments;
  StateBlock block = StateBlock::zeros("gradients", BlockKind::Gradients, MergeRule::Keep, table,
                                       DType::Float32, context.device());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    TorchPlace& place = parameters[i];
    if (!place.tensor.requires_grad()) continue;
    place.gradients = at::from_blob(block.values.data<float>() + table->segments[i].offset,
                                    place.values.sizes(), place.values.strides(), place.values.options());
    place.tensor.mutable_grad() = place.gradients;
  }
  blocks.push_back(std::move(block));
}

void TorchModel::Impl::requireInBlocks() const {
  const auto require1 = [](const TorchPlace& place, std::string_view what) {
    require(isAt(place.tensor, place.values),
            "torch: the {} {} is no longer in the model's block ({}): to(), set_data() or torch::load() gave "
            "it other memory; TorchModel::adopt() takes its values",
            what, place.name, described(place.tensor));
  };
  for (const auto& place : parameters) require1(place, "parameter");
  for (const auto& place : buffers) require1(place, "buffer");
}

void TorchModel::Impl::requirePlaces() const {
  const auto current = module->parameters();
  require(current.size() == handles,
          "torch: the module has {} parameters, and had {} when the model was made", current.size(), handles);
  requireInBlocks();
  for (const auto& tensor : current) {
    const auto known = [&](const TorchPlace& place) { return place.tensor.is_same(tensor); };
    require(std::ranges::any_of(parameters, known),
            "torch: the module has another parameter {} than when the model was made", described(tensor));
  }
}

void TorchModel::Impl::requireGradients() const {
  for (const auto& place : parameters) {
    if (!place.gradients.defined()) continue;
    require(isAt(place.tensor.grad(), place.gradients),
            "torch: the gradient of {} is no longer in the model's block: zero_grad() by none, or another "
            "tensor in its place; the model zeroes gradients itself",
            place.name);
  }
}

TorchModel::TorchModel(detail::TorchProgram program, TrainingOptions options, Context* context)
    : Model(std::move(options), context),
      impl_(translated([&] { return std::make_unique<Impl>(std::move(program), *this); })) {}

TorchModel::~TorchModel() = default;

torch::nn::Module& TorchModel::module() {
  return *impl_->module;
}
std::shared_ptr<torch::nn::Module> TorchModel::shared() {
  return impl_->module;
}

void TorchModel::adopt() {
  translated([&] {
    const torch::NoGradGuard noGrad;
    const auto check = [](const TorchPlace& place) {
      require(place.tensor.sizes() == place.values.sizes() && place.tensor.scalar_type() == at::kFloat &&
                  place.tensor.device() == place.values.device(),
              "torch: {} is now {}, and was {}", place.name, described(place.tensor),
              described(place.values));
    };
    for (const auto* places : {&impl_->parameters, &impl_->buffers})
      for (const auto& place : *places) check(place);
    impl_->onDevice([&] {
      for (auto* places : {&impl_->parameters, &impl_->buffers})
        for (auto& place : *places) {
          if (!isAt(place.tensor, place.values)) {
            place.values.copy_(place.tensor);
            place.tensor.set_data(place.values);
          }
          if (place.gradients.defined()) place.tensor.mutable_grad() = place.gradients;
        }
    });
  });
}

std::unique_ptr<Model> TorchModel::replicate(Context& context) const {
  impl_->requireInBlocks();
  auto replica = std::unique_ptr<TorchModel>(new TorchModel(impl_->program, trainingOptions(), &context));
  const auto &mine = impl_->kept.all(), &theirs = replica->impl_->kept.all();
  require(mine.size() == theirs.size(),
          "torch: the factory must make modules of the same parameters in each call");
  const torch::NoGradGuard noGrad;
  translated([&] {
    replica->impl_->onDevice([&] {
      for (std::size_t i = 0; i < mine.size(); ++i) at::Tensor(theirs[i].second).copy_(mine[i].second);
    });
  });
  return replica;
}

StepTicket TorchModel::gradient(const Batch& batch) {
  const TorchThreads threads(context().threads());
  return translated([&] {
    impl_->requirePlaces();
    impl_->module->train();
    setZero(impl_->blocks[1].values, context());
    StepScore result{.weight = static_cast<double>(batch.examples())};
    impl_->onDevice([&] {
      at::Tensor loss;
      const at::AutoGradMode recorded(true);
      impl_->program.loss(*impl_->module, TorchBatch(batch, true, context().device()), loss, result.weight);
      require(loss.defined() && loss.numel() == 1, "torch: the loss is not a scalar: {}",
              loss.defined() ? described(loss) : "undefined");
      loss.backward();
      impl_->requireGradients();
      result.score = loss.item<double>();
    });
    return StepTicket(result);
  });
}

/// A wrapper, a file or an evaluation would read the values from before `torch::load`.
std::span<StateBlock> TorchModel::blocks() {
  impl_->requireInBlocks();
  return impl_->blocks;
}

void TorchModel::output(const Batch& batch, Tensor& out) {
  require(impl_->program.output != nullptr,
          "torch: the module has no forward(Tensor); give the model a function of its predictions");
  const TorchThreads threads(context().threads());
  translated([&] {
    const torch::NoGradGuard noGrad;
    impl_->requirePlaces();
    impl_->module->eval();
    impl_->onDevice([&] {
      at::Tensor predictions;
      impl_->program.output(*impl_->module, TorchBatch(batch, false, context().device()), predictions);
      require(predictions.defined() && predictions.scalar_type() == at::kFloat,
              "torch: predictions must be float32, got {}",
              predictions.defined() ? described(predictions) : "none");
      out.resize(shapeOf(predictions), DType::Float32);
      viewOf(out).copy_(predictions);
    });
  });
}

double TorchModel::score(const Batch& batch) {
  const TorchThreads threads(context().threads());
  return translated([&] {
    const torch::NoGradGuard noGrad;
    impl_->requirePlaces();
    impl_->module->eval();
    double result = 0, weight = 0;
    impl_->onDevice([&] {
      at::Tensor loss;
      impl_->program.loss(*impl_->module, TorchBatch(batch, false, context().device()), loss, weight);
      require(loss.defined() && loss.numel() == 1, "torch: the loss is not a scalar");
      result = loss.item<double>();
    });
    return result;
  });
}

std::string TorchModel::planRemark() const {
  const auto random = randomModules(*impl_->module);
  if (random.empty()) return {};
  return fmt::format(
      "{} draw{} from libtorch's one generator for all threads, so several workers give other bits each time",
      fmt::join(random, ", "), random.size() == 1 ? "s" : "");
}

}  // namespace muster
