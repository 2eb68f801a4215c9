#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string_view>

// The networks of workloads.cpp and LeNet in libtorch.

namespace libtorch {

namespace nn = torch::nn;

struct Net : nn::Module {
  virtual torch::Tensor forward(torch::Tensor x) = 0;
};

struct ConvNet : Net {
  nn::Conv2d conv1{nullptr}, conv2{nullptr};
  nn::Linear dense{nullptr}, output{nullptr};

  ConvNet() {
    conv1 = register_module("conv1", nn::Conv2d(nn::Conv2dOptions(1, 20, 5)));
    conv2 = register_module("conv2", nn::Conv2d(nn::Conv2dOptions(20, 50, 5)));
    dense = register_module("dense", nn::Linear(50 * 4 * 4, 500));
    output = register_module("output", nn::Linear(500, 10));
  }

  torch::Tensor forward(torch::Tensor x) override {
    x = torch::max_pool2d(conv1(x), 2);
    x = torch::max_pool2d(conv2(x), 2);
    return output(torch::relu(dense(x.flatten(1))));
  }
};

struct LeNet : Net {
  nn::Conv2d conv1{nullptr}, conv2{nullptr};
  nn::Linear dense1{nullptr}, dense2{nullptr}, output{nullptr};

  LeNet() {
    conv1 = register_module("conv1", nn::Conv2d(nn::Conv2dOptions(1, 6, 5).padding(2)));
    conv2 = register_module("conv2", nn::Conv2d(nn::Conv2dOptions(6, 16, 5)));
    dense1 = register_module("dense1", nn::Linear(16 * 5 * 5, 120));
    dense2 = register_module("dense2", nn::Linear(120, 84));
    output = register_module("output", nn::Linear(84, 10));
  }

  torch::Tensor forward(torch::Tensor x) override {
    x = torch::max_pool2d(conv1(x).relu_(), 2);
    x = torch::max_pool2d(conv2(x).relu_(), 2);
    return output(dense2(dense1(x.flatten(1)).relu_()).relu_());
  }
};

inline nn::Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
                              std::int64_t groups = 1) {
  return nn::Conv2d(
      nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).groups(groups).bias(false));
}

/// Two convolutions 3x3 and a shortcut, itself a convolution 1x1 where channels or size change.
struct Residual : nn::Module {
  nn::Conv2d conv1{nullptr}, conv2{nullptr}, shortcut{nullptr};
  nn::BatchNorm2d norm1{nullptr}, norm2{nullptr}, shortcutNorm{nullptr};

  Residual(std::int64_t in, std::int64_t out, std::int64_t stride) {
    conv1 = register_module("conv1", convolution(in, out, 3, stride));
    norm1 = register_module("norm1", nn::BatchNorm2d(out));
    conv2 = register_module("conv2", convolution(out, out, 3, 1));
    norm2 = register_module("norm2", nn::BatchNorm2d(out));
    if (in == out && stride == 1) return;
    shortcut = register_module("shortcut", convolution(in, out, 1, stride));
    shortcutNorm = register_module("shortcutNorm", nn::BatchNorm2d(out));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    auto y = norm1(conv1(x)).relu_();
    y = norm2(conv2(y));
    y += shortcut ? shortcutNorm(shortcut(x)) : x;
    return y.relu_();
  }
};

struct ResNet18 : Net {
  nn::Conv2d conv{nullptr};
  nn::BatchNorm2d norm{nullptr};
  nn::Sequential blocks;
  nn::Linear output{nullptr};

  ResNet18() {
    conv = register_module("conv", convolution(1, 64, 3, 1));
    norm = register_module("norm", nn::BatchNorm2d(64));
    for (std::int64_t in = 64, out = 64; out <= 512; in = out, out *= 2) {
      blocks->push_back(Residual(in, out, in == out ? 1 : 2));
      blocks->push_back(Residual(out, out, 1));
    }
    register_module("blocks", blocks);
    output = register_module("output", nn::Linear(512, 10));
  }

  torch::Tensor forward(torch::Tensor x) override {
    auto y = blocks->forward(norm(conv(x)).relu_());
    return output(torch::adaptive_avg_pool2d(y, {1, 1}).flatten(1));
  }
};

struct Depthwise : Net {
  nn::Sequential layers;
  nn::Linear output{nullptr};

  Depthwise() {
    add(1, 32, 3, 1, 1);
    std::int64_t in = 32;
    for (const auto& [out, stride] : {std::pair{64, 1}, {128, 2}, {128, 1}, {256, 2}}) {
      add(in, in, 3, stride, in);
      add(in, out, 1, 1, 1);
      in = out;
    }
    register_module("layers", layers);
    output = register_module("output", nn::Linear(256, 10));
  }

  torch::Tensor forward(torch::Tensor x) override {
    return output(torch::adaptive_avg_pool2d(layers->forward(x), {1, 1}).flatten(1));
  }

 private:
  void add(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride, std::int64_t groups) {
    layers->push_back(convolution(in, out, kernel, stride, groups));
    layers->push_back(nn::BatchNorm2d(out));
    layers->push_back(nn::ReLU(nn::ReLUOptions(true)));
  }
};

struct Mlp : Net {
  nn::Linear hidden{nullptr}, output{nullptr};

  explicit Mlp(std::int64_t units) {
    hidden = register_module("hidden", nn::Linear(64, units));
    output = register_module("output", nn::Linear(units, 10));
  }

  torch::Tensor forward(torch::Tensor x) override { return output(torch::relu(hidden(x))); }
};

/// Scores [N, classes, T], as the loss wants them.
struct CharLstm : Net {
  nn::Embedding embedding{nullptr};
  nn::LSTM lstm{nullptr};
  nn::Linear output{nullptr};

  CharLstm() {
    embedding = register_module("embedding", nn::Embedding(65, 64));
    lstm = register_module("lstm", nn::LSTM(nn::LSTMOptions(64, 256).num_layers(2).batch_first(true)));
    output = register_module("output", nn::Linear(256, 65));
  }

  torch::Tensor forward(torch::Tensor x) override {
    return output(std::get<0>(lstm(embedding(x)))).transpose(1, 2);
  }
};

/// Scores as above. Attention is written out, because libtorch's module needs the steps as first dimension.
struct Transformer : Net {
  nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  nn::Linear input{nullptr}, attended{nullptr}, wide{nullptr}, narrow{nullptr}, output{nullptr};

  Transformer() {
    norm1 = register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({256})));
    norm2 = register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({256})));
    input = register_module("input", nn::Linear(256, 3 * 256));
    attended = register_module("attended", nn::Linear(256, 256));
    wide = register_module("wide", nn::Linear(256, 1024));
    narrow = register_module("narrow", nn::Linear(1024, 256));
    output = register_module("output", nn::Linear(256, 64));
  }

  torch::Tensor forward(torch::Tensor x) override {
    const auto batch = x.size(0), steps = x.size(1);
    const auto parts = input(norm1(x)).view({batch, steps, 3, 8, 32}).permute({2, 0, 3, 1, 4}).unbind(0);
    const auto weights =
        torch::softmax(torch::matmul(parts[0] / std::sqrt(32.0), parts[1].transpose(2, 3)), 3);
    x = x + attended(torch::matmul(weights, parts[2]).transpose(1, 2).reshape({batch, steps, 256}));
    x = x + narrow(torch::gelu(wide(norm2(x))));
    return output(x).transpose(1, 2);
  }
};

/// @param name  as in workloads.cpp, or lenet
inline std::shared_ptr<Net> makeNet(std::string_view name) {
  if (name == "convnet") return std::make_shared<ConvNet>();
  if (name == "lenet") return std::make_shared<LeNet>();
  if (name == "resnet18") return std::make_shared<ResNet18>();
  if (name == "depthwise") return std::make_shared<Depthwise>();
  if (name == "mlp64") return std::make_shared<Mlp>(64);
  if (name == "mlp256") return std::make_shared<Mlp>(256);
  if (name == "char-lstm") return std::make_shared<CharLstm>();
  if (name == "transformer") return std::make_shared<Transformer>();
  throw std::invalid_argument("there is no network " + std::string(name));
}

/// Unlike `contiguous`, `to` also changes the strides of a tensor with one channel, which select kernels.
inline torch::Tensor channelsLast(const torch::Tensor& tensor) {
  return tensor.to(tensor.options(), false, false, torch::MemoryFormat::ChannelsLast);
}

/// `batches` batches of random features, and their labels.
struct ResidentData {
  ResidentData(std::string_view network, std::int64_t batch, std::int64_t batches)
      : batch_(batch), batches_(batches) {
    const auto examples = batch * batches;
    const bool rows = network.starts_with("mlp");
    if (network == "char-lstm") {
      features_ = torch::randint(65, {examples, 64}, torch::kLong);
      labels_ = torch::randint(65, {examples, 64}, torch::kLong);
    } else if (network == "transformer") {
      features_ = torch::rand({examples, 128, 256});
      labels_ = torch::randint(64, {examples, 128}, torch::kLong);
    } else {
      features_ = rows ? torch::rand({examples, 64}) : channelsLast(torch::rand({examples, 1, 28, 28}));
      labels_ = torch::randint(10, {examples}, torch::kLong);
    }
  }
  torch::Tensor features(std::int64_t step) const { return part(features_, step); }
  torch::Tensor labels(std::int64_t step) const { return part(labels_, step); }

 private:
  torch::Tensor part(const torch::Tensor& all, std::int64_t step) const {
    return all.narrow(0, step % batches_ * batch_, batch_);
  }

  std::int64_t batch_, batches_;
  torch::Tensor features_, labels_;
};

}  // namespace libtorch
