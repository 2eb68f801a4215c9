// Comparisons of vectors have brackets of their own, as glog prints vectors, and not those of bytes.
// libtorch's headers come before doctest's, whose CHECK is not glog's.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <torch/nn.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>
#include <torch/version.h>
#undef CHECK
#undef CHECK_EQ
#undef CHECK_NE
#undef CHECK_LT
#undef CHECK_LE
#undef CHECK_GT
#undef CHECK_GE

#include "muster/core/base/random.h"
#include "muster/core/interop/torch/torch_model.h"
#include "muster/parallel/nodes.h"
#include "muster/parallel/strategies.h"
#include "tests/parallel/builder_of.h"
#include "tests/support/devices.h"
#include "tests/support/list_iterator.h"
#include "tests/support/rounding.h"
#include "tests/support/state_bits.h"
#include "tests/support/test.h"
#include "tests/support/toy_wrapper.h"
#include "tests/support/virtual_network.h"

namespace muster::test {
namespace {

/// Images [3, 6, 6] in 4 classes.
struct ConvNet : torch::nn::Module {
  torch::nn::Conv2d conv{torch::nn::Conv2dOptions(3, 8, 3).padding(1)};
  torch::nn::BatchNorm2d norm{8};
  torch::nn::Linear dense{8 * 9, 4};
  ConvNet() {
    register_module("conv", conv);
    register_module("norm", norm);
    register_module("dense", dense);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return dense(torch::max_pool2d(torch::relu(norm(conv(x))), 2).flatten(1));
  }
};

std::shared_ptr<ConvNet> makeConvNet() {
  return std::make_shared<ConvNet>();
}

/// The mean cross-entropy of any module's logits.
const auto crossEntropy = [](auto& net, const TorchBatch& batch) {
  return torch::nn::functional::cross_entropy(net.forward(batch.features()), batch.labels());
};

TrainingOptions momentum() {
  return {.updater = Nesterovs{.learningRate = 0.05, .momentum = 0.9}, .l2 = 1e-3};
}

/// The same parameters each time.
std::unique_ptr<TorchModel> convModel(const TrainingOptions& options = momentum()) {
  torch::manual_seed(5);
  return std::make_unique<TorchModel>(makeConvNet, crossEntropy, options);
}

Batch imageBatch(std::uint64_t seed, std::int64_t examples = 6) {
  Batch batch;
  Tensor images = Batch::ensure(batch.features, "images", {examples, 3, 6, 6});
  Tensor labels = Batch::ensure(batch.labels, "classes", {examples}, DType::Int64);
  const RandomStream random(seed, "torch");
  std::uint64_t index = 0;
  for (float& value : images.span<float>()) value = static_cast<float>(random.normal(index++));
  for (auto& label : labels.span<std::int64_t>()) label = static_cast<std::int64_t>(random.below(index++, 4));
  return batch;
}

ListIterator imageBatches(int count) {
  std::vector<Batch> batches;
  for (int b = 0; b < count; ++b) batches.push_back(imageBatch(static_cast<std::uint64_t>(b)));
  return ListIterator(std::move(batches));
}

float* parameter(TorchModel& model, const std::string& name) {
  return model.block(BlockKind::Parameters).segment(name).data<float>();
}

TEST_CASE("one worker trains a libtorch module to the bits of model.fit() at any frequency") {
  const auto trained = [](int workers, std::int64_t frequency) {
    auto model = convModel();
    auto data = imageBatches(7);
    fitWith(*model, workers, data, 2, {}, frequency);
    return stateBits(*model);
  };
  for (const std::int64_t frequency : {1, 3}) CHECK((trained(1, frequency) == trained(0, 1)));
}

void copyParameters(const torch::nn::Module& from, torch::nn::Module& to) {
  const torch::NoGradGuard noGrad;
  const auto values = from.named_parameters();
  for (auto& one : to.named_parameters()) one.value().copy_(values[one.key()]);
}

double largest(const torch::Tensor& tensor) {
  return tensor.abs().max().item<double>();
}

TEST_CASE("each step computes the same as libtorch's own training loop") {
  // On the model's one thread, because the sums of several threads are rounded otherwise: libtorch 2.15 adds
  // up the gradient of the convolution's weight so.
  struct OneThread {
    const int before = torch::get_num_threads();
    OneThread() { torch::set_num_threads(1); }
    ~OneThread() { torch::set_num_threads(before); }
  } const oneThread;
  auto model = convModel({.updater = Sgd{.learningRate = 0.05}});
  const auto plain = makeConvNet();
  torch::optim::SGD optimizer(plain->parameters(), torch::optim::SGDOptions(0.05));
  for (int step = 0; step < 8; ++step) {
    copyParameters(model->module(), *plain);
    std::vector<torch::Tensor> before;
    for (const auto& one : plain->parameters()) before.push_back(one.detach().clone());
    Batch batch = imageBatch(static_cast<std::uint64_t>(step));
    const double score = model->step(batch).wait().score;
    const TorchBatch there(batch, true);
    plain->train();
    optimizer.zero_grad();
    auto loss = crossEntropy(*plain, there);
    loss.backward();
    optimizer.step();
    CHECK(score == loss.item<double>());
    // The same gradient g by the same operations; p - r g is rounded once or twice in each, r once.
    const auto mine = model->module().named_parameters();
    std::size_t i = 0;
    int moving = 0;
    for (const auto& theirs : plain->named_parameters()) {
      const auto difference = (mine[theirs.key()] - theirs.value()).abs();
      const auto moved = (theirs.value() - before[i]).abs();
      const auto bound = 2 * kRounding * (before[i].abs() + 3 * moved);
      CHECK_MESSAGE((difference <= bound).all().item<bool>(), theirs.key());
      moving += largest(moved) > 0;
      ++i;
    }
    CHECK(moving >= 5);  // of six: the normalisation takes the convolution's bias out again
    CHECK(torch::equal(model->shared<ConvNet>()->norm->running_mean, plain->norm->running_mean));
  }
}

TEST_CASE("a batch whose variance overflows ends fit(), and the module keeps the statistics of before") {
  // Its loss and its gradients are finite, since the normalisation divides by the deviation.
  std::vector<Batch> batches{imageBatch(0), imageBatch(1)}, first{imageBatch(0)};
  batches[1].features.front().value.data<float>()[0] = 1e30f;
  ListIterator data(batches), before(first);
  auto expected = convModel();
  expected->fit(before);
  expected->setCounters(1, 0);  // the epoch was not finished
  for (const int workers : {0, 1}) {
    auto model = convModel();
    CHECK_CONTAINS(thrown<Error>([&] { fitWith(*model, workers, data, 1); }),
                   "the statistics of norm.running_var are not finite: element 0 is ");
    CHECK((stateBits(*model) == stateBits(*expected)));
  }
}

TEST_CASE("running statistics of workers are merged as moments") {
  auto model = convModel();
  const auto start = makeConvNet();  // a module as each worker has it at first
  copyParameters(model->module(), *start);
  std::vector<std::pair<torch::Tensor, torch::Tensor>> moments;  // [worker] mean and variance after its batch
  std::vector<Batch> batches{imageBatch(0, 6), imageBatch(1, 2)};
  for (const auto& batch : batches) {
    start->norm->running_mean.zero_();
    start->norm->running_var.fill_(1);
    start->train();
    start->forward(TorchBatch(batch, true).features());
    moments.emplace_back(start->norm->running_mean.to(torch::kDouble),
                         start->norm->running_var.to(torch::kDouble));
  }
  ListIterator data(batches);
  fitWith(*model, 2, data, 1);
  const auto& [meanA, varianceA] = moments[0];
  const auto& [meanB, varianceB] = moments[1];
  const auto mean = 0.75 * meanA + 0.25 * meanB;
  const auto variance =
      0.75 * (varianceA + meanA.square()) + 0.25 * (varianceB + meanB.square()) - mean.square();
  const auto& norm = model->shared<ConvNet>()->norm;
  CHECK(largest(norm->running_mean.to(torch::kDouble) - mean) <= roundings(1));
  CHECK(largest(norm->running_var.to(torch::kDouble) - variance) <= roundings(2));
  CHECK(largest(mean) > 1e-3);
}

TEST_CASE("every rule trains a libtorch module, with the same bits each time") {
  auto data = imageBatches(24);
  const auto untrained = stateBits(*convModel());
  const auto rules = std::apply([](const auto&... rule) { return std::vector<AnyStrategy>{rule...}; },
                                muster::detail::LibraryStrategies{});
  for (const auto& rule : rules) {
    const TrainingOptions options{.updater = Sgd{.learningRate = 0.02}};
    const auto first = convModel(options), second = convModel(options);
    for (TorchModel* model : {first.get(), second.get()}) {
      auto wrapper = builderOf(*model, 2, rule).build();
      CAPTURE(wrapper.plan());
      wrapper.fit(data);
      CHECK(std::isfinite(model->score()));
    }
    CHECK((stateBits(*first) == stateBits(*second)));
    CHECK((stateBits(*first) != untrained));
  }
}

TEST_CASE("over nodes a libtorch module has the bits of one process that adds up in as many groups") {
  const auto untrained = stateBits(*convModel());
  for (const AnyStrategy& rule :
       {AnyStrategy(Averaging{.frequency = 3}), AnyStrategy(OuterAveraging{.frequency = 2, .momentum = 0.5}),
        AnyStrategy(ElasticAveraging{.frequency = 2}), AnyStrategy(SynchronousGradients{})}) {
    auto together = convModel(), first = convModel(), second = convModel();
    auto data = imageBatches(12);
    auto wrapper = builderOf(*together, 4, rule).groups(2).build();
    CAPTURE(wrapper.plan());
    wrapper.fit(data);
    VirtualNetwork network(2);
    {
      std::vector<std::jthread> nodes;
      for (TorchModel* model : {first.get(), second.get()})
        nodes.emplace_back([&network, &rule, model, node = static_cast<int>(nodes.size())] {
          auto share = imageBatches(12);
          builderOf(*model, 2, rule)
              .nodes(Nodes([&network, node] { return network.transport(node); }, std::chrono::seconds(30)))
              .build()
              .fit(share);
        });
    }
    CHECK((stateBits(*together) != untrained));
    CHECK((stateBits(*first) == stateBits(*together)));
    CHECK((stateBits(*second) == stateBits(*together)));
  }
}

TEST_CASE("on a gpu a libtorch module learns as on the CPU, or a libtorch without CUDA is named") {
  if (const auto reason = OnGpu::whyNot(); !reason.empty()) return skip(reason);
  auto there = convModel(), here = convModel();
  auto data = imageBatches(8);
  auto builder = toyWrapper(*there, 2, 2);
  builder.devices({OnGpu::device()});
  if (!at::hasCUDA()) {
    CHECK_CONTAINS(thrown<Error>([&] { builder.build().fit(data); }), "this libtorch has no CUDA");
    return skip("this libtorch has no CUDA");
  }
  builder.build().fit(data);
  toyWrapper(*here, 2, 2).build().fit(data);
  double apart = 0, moved = 0;
  const auto before = convModel();
  for (const auto& mine : here->module().named_parameters()) {
    apart = std::max(apart, largest(there->module().named_parameters()[mine.key()] - mine.value()));
    moved = std::max(moved, largest(before->module().named_parameters()[mine.key()] - mine.value()));
  }
  // Four steps; libtorch lets cuDNN multiply with 10 bits of mantissa in convolutions.
  CHECK(apart <= 0.02 * moved);
  CHECK(moved > 0);
}

TEST_CASE("blocks have libtorch's names and shapes, and the module's tensors are views of them") {
  auto model = convModel();
  std::vector<std::string> names;
  for (const auto& segment : model->blocks()[0].segments->segments)
    names.push_back(segment.name + " " + segment.shape.toString() + (segment.regularised ? "" : " -"));
  CHECK((names == std::vector<std::string>{"conv.weight [8, 3, 3, 3]", "conv.bias [8] -", "norm.weight [8] -",
                                           "norm.bias [8] -", "dense.weight [4, 72]", "dense.bias [4] -"}));
  CHECK(model->block(BlockKind::Statistics).merge == MergeRule::Moments);
  const auto net = model->shared<ConvNet>();
  CHECK(net->dense->bias.data_ptr<float>() == parameter(*model, "dense.bias"));
  CHECK(net->dense->bias.grad().data_ptr<float>() ==
        model->block(BlockKind::Gradients).segment("dense.bias").data<float>());
  CHECK(net->norm->running_var.data_ptr<float>() ==
        model->block(BlockKind::Statistics).segment("norm.running_var").data<float>());
  const auto replica = model->replicate(model->context());
  CHECK(dynamic_cast<TorchModel&>(*replica).shared<ConvNet>()->conv->weight.data_ptr() !=
        net->conv->weight.data_ptr());
}

TEST_CASE("a batch is passed to the module without a copy") {
  const void *features = nullptr, *labels = nullptr;
  TorchModel model(makeConvNet, [&](ConvNet& net, const TorchBatch& batch) {
    features = batch.features("images").data_ptr();
    labels = batch.labels().data_ptr();
    CHECK(!batch.mask("none").defined());
    return crossEntropy(net, batch);
  });
  const Batch batch = imageBatch(1);
  model.gradient(batch);
  CHECK(features == batch.features.front().value.raw());
  CHECK(labels == batch.labels.front().value.raw());
}

TEST_CASE("a loss function may return its own weight") {
  TorchModel model(makeConvNet, [](ConvNet& net, const TorchBatch& batch) {
    return std::make_pair(crossEntropy(net, batch), 2.5);
  });
  CHECK(model.gradient(imageBatch(1)).wait().weight == 2.5);
  CHECK(convModel()->gradient(imageBatch(1, 5)).wait().weight == 5);
}

TEST_CASE("a parameter that leaves the blocks is found and named, and can be put back") {
  const Batch batch = imageBatch(1);
  const auto refusal = [&](const std::function<void(ConvNet&)>& act) {
    auto model = convModel();
    act(*model->shared<ConvNet>());
    return thrown<InvalidArgument>([&] { model->step(batch); });
  };
  CHECK(refusal([](ConvNet&) {}).empty());
  CHECK(refusal([](ConvNet& net) { net.to(torch::kDouble); }) ==
        "torch: the parameter conv.weight is no longer in the model's block (Double [8, 3, 3, 3] on cpu): "
        "to(), set_data() or torch::load() gave it other memory; TorchModel::adopt() takes its values");
  CHECK_CONTAINS(refusal([](ConvNet& net) { net.dense->bias.set_data(torch::zeros(4)); }),
                 "parameter dense.bias is no");
  CHECK_CONTAINS(refusal([](ConvNet& net) { net.norm->running_var.set_data(torch::ones(8)); }),
                 "buffer norm.running_var is no");
  CHECK(refusal([](ConvNet& net) { net.register_parameter("more", torch::zeros(1)); }) ==
        "torch: the module has 7 parameters, and had 6 when the model was made");
  CHECK(refusal([](ConvNet& net) { net.conv->bias.mutable_grad() = torch::Tensor(); }) ==
        "torch: the gradient of conv.bias is no longer in the model's block: zero_grad() by none, or another "
        "tensor in its place; the model zeroes gradients itself");
  CHECK(refusal([](ConvNet& net) { net.zero_grad(); }).empty() != (TORCH_VERSION_MAJOR >= 2));
  CHECK(thrown<InvalidArgument>([] {
          TorchModel model(
              [] {
                auto net = makeConvNet();
                net->norm->to(torch::kDouble);
                return net;
              },
              crossEntropy);
        }) ==
        "torch: the parameter norm.weight is Double [8] on cpu; a TorchModel takes modules in float32 on the "
        "CPU");

  const TemporaryDirectory directory;
  auto trained = convModel(), loaded = convModel();
  for (int i = 0; i < 3; ++i) trained->step(batch);
  torch::save(trained->shared<ConvNet>(), (directory / "net.pt").string());
  auto net = loaded->shared<ConvNet>();
  torch::load(net, (directory / "net.pt").string());
  for (const auto& use : std::initializer_list<std::function<void()>>{
           [&] { loaded->state(); }, [&] { static_cast<void>(loaded->replicate(loaded->context())); },
           [&] { convModel()->copyStateFrom(*loaded); }})
    CHECK_CONTAINS(thrown<InvalidArgument>(use), "TorchModel::adopt() takes its values");
  loaded->adopt();
  CHECK(parameter(*loaded, "conv.bias")[1] == parameter(*trained, "conv.bias")[1]);
  CHECK_NOTHROW(loaded->step(batch));
  net->to(torch::kDouble);
  CHECK_CONTAINS(thrown<InvalidArgument>([&] { loaded->adopt(); }), "conv.weight is now Double");
}

TEST_CASE("libtorch's errors become one sentence, and losses and predictions are checked") {
  const Batch batch = imageBatch(1);
  const auto problem = [&](auto loss) {
    TorchModel model(makeConvNet, loss);
    return thrown<Error>([&] { model.gradient(batch); });
  };
  const auto text =
      problem([](ConvNet& net, const TorchBatch& b) { return net.forward(b.features().flatten(1)); });
  CHECK_CONTAINS(text, "torch: ");
  CHECK_LACKS(text, "frame #");
  CHECK(problem([](ConvNet& net, const TorchBatch& b) { return net.forward(b.features()); }) ==
        "torch: the loss is not a scalar: Float [6, 4] on cpu");
  CHECK(problem([](ConvNet& net, const TorchBatch& b) { return net.forward(b.features("x")).mean(); }) ==
        "torch: the batch has no features called x");
}

TEST_CASE("predictions and scores are computed in evaluation mode") {
  auto model = convModel();
  const Batch batch = imageBatch(1);
  model->step(batch);
  const auto net = model->shared<ConvNet>();
  Tensor out;
  model->output(batch, out);
  const double score = model->score(batch);
  net->eval();
  const auto logits = net->forward(TorchBatch(batch, false).features());
  CHECK(out.shape() == Shape{6, 4});
  CHECK(std::equal(out.data<float>(), out.data<float>() + 24, logits.contiguous().data_ptr<float>()));
  CHECK(score == crossEntropy(*net, TorchBatch(batch, false)).template item<double>());
  TorchModel doubled(
      makeConvNet, crossEntropy,
      [](ConvNet& module, const TorchBatch& b) { return 2 * module.forward(b.features()); }, momentum());
  Tensor twice;
  doubled.copyStateFrom(*model);
  doubled.output(batch, twice);
  CHECK(twice.data<float>()[3] == 2 * out.data<float>()[3]);
}

TEST_CASE("frozen parameters do not change, shared ones exist once, channels-last ones keep their layout") {
  struct Shared : torch::nn::Module {
    torch::nn::Linear a{4, 4}, frozen{4, 2};
    Shared() {
      register_module("a", a);
      register_module("again", a.ptr());
      register_module("frozen", frozen);
      frozen->weight.requires_grad_(false);
    }
    torch::Tensor forward(const torch::Tensor& x) { return frozen(a(a(x.flatten(1).narrow(1, 0, 4)))); }
  };
  TorchModel model([] { return std::make_shared<Shared>(); }, crossEntropy, momentum());
  CHECK(model.parameterCount() == 4 * 4 + 4 + 4 * 2 + 2);
  Batch batch = imageBatch(1);
  for (auto& label : batch.labels.front().value.span<std::int64_t>()) label %= 2;
  const float weight = *parameter(model, "frozen.weight"), free = *parameter(model, "a.weight");
  model.step(batch);
  CHECK(*parameter(model, "frozen.weight") == weight);
  CHECK(*parameter(model, "a.weight") != free);

  auto plain = convModel();
  torch::manual_seed(5);
  TorchModel last(
      [] {
        auto net = makeConvNet();
        net->conv->to(torch::kFloat);
        const torch::NoGradGuard noGrad;
        net->conv->weight.set_data(net->conv->weight.contiguous(torch::MemoryFormat::ChannelsLast));
        return net;
      },
      crossEntropy, momentum());
  last.step(batch);
  const auto& conv = last.shared<ConvNet>()->conv->weight;
  CHECK(conv.is_contiguous(torch::MemoryFormat::ChannelsLast));
  CHECK(!conv.is_contiguous());
  plain->step(batch);
  // Other kernels sum the 27 products of a pixel and the 36 pixels of a gradient in another order.
  CHECK(largest(conv - plain->shared<ConvNet>()->conv->weight) <= roundings(27 + 36 * 6 + 72, 1));
}

TEST_CASE("plan() names modules that draw random numbers") {
  auto quiet = convModel();
  CHECK_LACKS(toyWrapper(*quiet, 2).build().plan(), "libtorch");
  TorchModel random(
      [] {
        return torch::nn::Sequential(torch::nn::Flatten(), torch::nn::Dropout(0.5),
                                     torch::nn::Linear(108, 4));
      },
      crossEntropy);
  const auto plan = toyWrapper(random, 2).build().plan();
  CAPTURE(plan);
  CHECK(
      plan.ends_with("; 1 draws from libtorch's one generator for all threads, so several workers give other "
                     "bits each time"));
  auto data = imageBatches(4);
  auto wrapper = toyWrapper(random, 2).build();
  CHECK_NOTHROW(wrapper.fit(data));
}

TEST_CASE("libtorch uses a worker's number of threads inside the worker, and the caller's elsewhere") {
  at::set_num_threads(3);
  std::atomic<int> calls = 0, wrong = 0;
  TorchModel model(makeConvNet, [&](ConvNet& net, const TorchBatch& batch) {
    ++calls;
    if (at::get_num_threads() != 2) ++wrong;
    return crossEntropy(net, batch);
  });
  auto data = imageBatches(8);
  auto wrapper = toyWrapper(model, 2).threadsPerWorker(2).build();
  wrapper.fit(data);
  CHECK(calls == 8);
  CHECK(wrong == 0);
  CHECK(at::get_num_threads() == 3);
  at::set_num_threads(1);
}

}  // namespace
}  // namespace muster::test
