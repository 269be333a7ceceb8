#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "io/base/foreign_files.h"
#include "io/model/experts_in_turns.h"
#include "io/model/lora.h"
#include "io/model/model_config.h"
#include "io/model/model_files.h"
#include "io/model/safetensors.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

/// What a tensor is called in Hugging Face checkpoints, which adapters go by too, and in GGUF files.
struct Name {
  const char* hugging_face;
  const char* gguf;
};
constexpr Name kEmbedding{"model.embed_tokens", "token_embd"};
constexpr Name kFinalNorm{"model.norm", "output_norm"};
constexpr Name kOutput{"lm_head", "output"};
constexpr Name kLayer{"model.layers.", "blk."};  // before the layer's number; the others after it
constexpr Name kQ{"self_attn.q_proj", "attn_q"};
constexpr Name kK{"self_attn.k_proj", "attn_k"};
constexpr Name kV{"self_attn.v_proj", "attn_v"};
constexpr Name kQkv{"self_attn.qkv_proj", "attn_qkv"};
constexpr Name kQNorm{"self_attn.q_norm", "attn_q_norm"};
constexpr Name kKNorm{"self_attn.k_norm", "attn_k_norm"};
constexpr Name kO{"self_attn.o_proj", "attn_output"};
constexpr Name kGate{"mlp.gate_proj", "ffn_gate"};
constexpr Name kUp{"mlp.up_proj", "ffn_up"};
constexpr Name kGateUp{"mlp.gate_up_proj", "ffn_up"};
constexpr Name kDown{"mlp.down_proj", "ffn_down"};

/// A vector whose values are made of those of the file whenever they are read.
Matrix changed(Matrix stored, std::function<void(std::vector<float>&)> change) {
  Matrix result;
  result.name = stored.name;
  result.file = stored.file;
  result.rows = stored.rows;
  result.cols = stored.cols;
  auto rows = std::make_shared<StoredRows>();
  rows->tensor = stored.name;
  rows->data = stored.data;
  rows->bytes = stored.row_bytes();
  rows->read = [from = std::move(stored), made = std::move(change)](int64_t, int64_t, std::byte* out) {
    std::vector<float> values = from.read_all();
    made(values);
    std::memcpy(out, values.data(), values.size() * sizeof(float));
  };
  result.source = std::move(rows);
  return result;
}

/// A norm that the file has as w - 1.
Matrix plus_one(Matrix stored) {
  return changed(std::move(stored), [](std::vector<float>& values) {
    for (float& value : values) value += 1;
  });
}

/// Heads of `size` rows, the first `dim` of each stored pair by pair, with the pairs put back as two halves.
std::vector<float> halve(const std::vector<float>& pairs, size_t size, size_t dim, size_t width) {
  std::vector<float> halves = pairs;
  for (size_t head = 0; head < pairs.size() / width; head += size)
    for (size_t i = 0; i < dim; ++i)
      std::copy_n(pairs.begin() + static_cast<ptrdiff_t>((head + i % (dim / 2) * 2 + i / (dim / 2)) * width),
                  width, halves.begin() + static_cast<ptrdiff_t>((head + i) * width));
  return halves;
}

/// A bias, or an adapter, of a matrix whose heads are stored pair by pair.
Matrix halved(Matrix stored, const Matrix& matrix) {
  const auto size = static_cast<size_t>(matrix.rope_head_dim), dim = static_cast<size_t>(matrix.rope_dim);
  return changed(std::move(stored),
                 [size, dim](std::vector<float>& values) { values = halve(values, size, dim, 1); });
}
std::shared_ptr<const LowRank> halved(const LowRank& adapter, const Matrix& matrix) {
  auto result = std::make_shared<LowRank>(adapter);
  result->b = halve(adapter.b, static_cast<size_t>(matrix.rope_head_dim),
                    static_cast<size_t>(matrix.rope_dim), static_cast<size_t>(adapter.rank));
  return result;
}

/// Finds every weight of a model among its tensors, checks its shape and type, and points the model at it.
/// Tensors and adapter modules that fit nowhere are refused.
class Loader {
 public:
  /// `named`: how the tensors are called; `adapter` may be null.
  Loader(TensorMap& tensors, const FileConfig& description, const char* Name::*named, Adapter* adapter,
         Model& model)
      : tensors_(tensors),
        family_(*description.family),
        quantization_(description.quantization),
        further_(description.further),
        named_(named),
        adapter_(adapter),
        model_(model),
        config_(model.config) {}

  void load() {
    const int64_t vocab = config_.vocab, hidden = config_.hidden;
    model_.embedding = tensors_.take(weight(kEmbedding.*named_), {vocab, hidden});
    model_.final_norm = norm(kFinalNorm.*named_, hidden);
    if (config_.tied_output) {
      model_.output = model_.embedding;
      tensors_.ignore(weight(kOutput.*named_));
    } else {
      model_.output = take(kOutput.*named_, vocab, hidden);
      if (adapter_ != nullptr) adapter_->attach(kOutput.hugging_face, model_.output);
    }
    if (config_.biases.output) model_.output_bias = tensors_.take(kOutput.*named_ + ".bias"s, {vocab});
    for (int32_t i = 0; i < config_.layer_count(); ++i) load_layer(i);
    leave_out_further_layers();
    for (const char* name : {"rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight"})
      tensors_.ignore(name);
    tensors_.refuse_unused();
    if (adapter_ != nullptr) adapter_->refuse_unused();
  }

 private:
  void leave_out_further_layers() {
    for (int64_t i = 0; i < further_; ++i) {
      const std::string prefix = fmt::format("{}{}.", kLayer.*named_, config_.layer_count() + i);
      for (auto at = tensors_.all().lower_bound(prefix);
           at != tensors_.all().end() && at->first.starts_with(prefix); ++at)
        tensors_.ignore(at->first);
    }
  }

  static std::string weight(const std::string& name) { return name + ".weight"; }
  std::string in_layer(const Name& name, const char* Name::*named) const {
    return kLayer.*named + std::to_string(layer_) + "." + name.*named;
  }

  Matrix take(const std::string& module, int64_t rows, int64_t cols) {
    if (quantization_) {
      if (auto matrix = take_quantized(tensors_, *quantization_, module, rows, cols)) {
        // Some programs write a bias for every layer that they quantize.
        tensors_.ignore_zeros(module + ".bias");
        return *matrix;
      }
    }
    return tensors_.take(weight(module), {rows, cols});
  }
  Matrix linear(const Name& name, int64_t rows, int64_t cols, bool heads = false) {
    Matrix matrix = take(in_layer(name, named_), rows, cols);
    if (heads && paired()) {
      matrix.rope_head_dim = config_.head_dim;
      matrix.rope_dim = config_.rotary_dim;
    }
    if (adapter_ != nullptr) adapter_->attach(in_layer(name, &Name::hugging_face), matrix);
    if (matrix.adapter && heads && family_.tensors.paired_hf)
      matrix.adapter = halved(*matrix.adapter, matrix);
    return matrix;
  }
  Matrix norm(const std::string& module, int64_t size) {
    Matrix taken = tensors_.take(weight(module), {size});
    const bool less_one = named_ == &Name::hugging_face && family_.tensors.norms_less_one;
    return less_one ? plus_one(std::move(taken)) : taken;
  }
  Matrix norm(const Name& name, int64_t size) { return norm(in_layer(name, named_), size); }
  /// A norm, or a bias, is empty where the model has none.
  Matrix norm(bool there, const char* hugging_face, const char* gguf) {
    return there ? norm(Name{hugging_face, gguf}, config_.hidden) : Matrix{};
  }
  Matrix bias(bool there, const Name& name, const Matrix& matrix) {
    if (!there) return {};
    Matrix taken = tensors_.take(in_layer(name, named_) + ".bias", {matrix.rows});
    return matrix.rope_head_dim > 0 ? halved(std::move(taken), matrix) : taken;
  }
  bool paired() const {
    return named_ == &Name::gguf ? family_.tensors.paired_gguf : family_.tensors.paired_hf;
  }

  void load_norms(LayerWeights& layer) {
    const Norms& norms = config_.norms;
    const FamilyTensors& names = family_.tensors;
    layer.pre_attention_norm = norm(norms.pre_attention, names.pre_attention_norm, "attn_norm");
    layer.post_attention_norm = norm(norms.post_attention, names.post_attention_norm, "post_attention_norm");
    layer.pre_mlp_norm = norm(norms.pre_mlp, names.pre_mlp_norm, names.gguf_pre_mlp_norm);
    layer.post_mlp_norm = norm(norms.post_mlp, names.post_mlp_norm, "post_ffw_norm");
  }

  void load_biases(LayerWeights& layer) {
    const Biases& biases = config_.biases;
    layer.q_bias = bias(biases.q, kQ, layer.q);
    layer.k_bias = bias(biases.k, kK, layer.k);
    layer.v_bias = bias(biases.v, kV, layer.v);
    layer.o_bias = bias(biases.o, kO, layer.o);
    layer.gate_bias = bias(biases.gate, kGate, layer.gate);
    layer.up_bias = bias(biases.up, kUp, layer.up);
    layer.down_bias = bias(biases.down, kDown, layer.down);
  }

  /// An expert, or the MLP that all tokens share: its matrices' names before "gate_proj" and the like.
  void load_gated(const std::string& module, int64_t width, Matrix& gate, Matrix& up, Matrix& down) {
    const ExpertTensors& names = family_.tensors.experts;
    gate = linear_of(module + names.gate, width, config_.hidden);
    up = linear_of(module + names.up, width, config_.hidden);
    down = linear_of(module + names.down, config_.hidden, width);
  }
  Matrix linear_of(const std::string& module, int64_t rows, int64_t cols) {
    Matrix matrix = take(module, rows, cols);
    if (adapter_ != nullptr) adapter_->attach(module, matrix);
    return matrix;
  }
  /// Matrices of all experts in one tensor.
  std::vector<Matrix> stacked(const std::string& name, int64_t rows, int64_t cols) {
    const Matrix all = tensors_.take(name, {config_.experts.count, rows, cols});
    std::vector<Matrix> parts;
    for (int64_t i = 0; i < config_.experts.count; ++i)
      parts.push_back(all.slice(i * rows, rows, fmt::format("{}:{}", name, i)));
    return parts;
  }

  void load_hf_experts(LayerWeights& layer) {
    const ExpertTensors& names = family_.tensors.experts;
    const std::string module = kLayer.hugging_face + std::to_string(layer_) + ".";
    const int64_t ffn = config_.experts.ffn, hidden = config_.hidden;
    // Some programs store routers in fewer bits too.
    layer.router = linear_of(module + names.router, config_.experts.count, hidden);
    if (config_.experts.choice_bias)
      layer.router_bias =
          tensors_.take(module + names.router + ".e_score_correction_bias", {config_.experts.count});
    if (config_.experts.logit_bias)
      layer.router_bias = tensors_.take(module + names.router + ".bias", {config_.experts.count});
    if (config_.experts.shared_gate) layer.shared_gate = linear_of(module + names.shared_gate, 1, hidden);
    if (config_.experts.shared_ffn > 0)
      load_gated(module + names.shared, config_.experts.shared_ffn, layer.gate, layer.up, layer.down);
    if (names.in_turns) {
      layer.experts = take_experts_in_turns(tensors_, module + names.experts,
                                            {config_.experts.count, config_.hidden, ffn});
      return;
    }
    if (names.gate_up != nullptr) {
      const auto both = stacked(weight(module + names.gate_up), 2 * ffn, hidden);
      const auto downs = stacked(weight(module + names.all_down), hidden, ffn);
      for (size_t i = 0; i < both.size(); ++i)
        layer.experts.push_back({both[i].slice(0, ffn, both[i].name + ":gate"),
                                 both[i].slice(ffn, ffn, both[i].name + ":up"), downs[i]});
      return;
    }
    for (int32_t i = 0; i < config_.experts.count; ++i) {
      ExpertWeights expert;
      load_gated(fmt::format("{}{}{}.", module, names.experts, i), ffn, expert.gate, expert.up, expert.down);
      layer.experts.push_back(std::move(expert));
    }
    attach_stacked(layer);
  }

  /// Adapters of programs that keep all experts of a layer in one tensor.
  void attach_stacked(LayerWeights& layer) {
    if (adapter_ == nullptr) return;
    const std::string module = kLayer.hugging_face + std::to_string(layer_) + ".";
    const std::string own(family_.tensors.experts.experts), usual = ExpertTensors().experts;
    for (const std::string& names : std::set<std::string>{own, usual})
      adapter_->attach_experts(module + names.substr(0, names.size() - 1), layer.experts);
  }

  void load_gguf_experts(LayerWeights& layer) {
    const std::string module = kLayer.gguf + std::to_string(layer_) + ".";
    const int64_t ffn = config_.experts.ffn, hidden = config_.hidden, shared = config_.experts.shared_ffn;
    layer.router = tensors_.take(weight(module + "ffn_gate_inp"), {config_.experts.count, hidden});
    if (config_.experts.choice_bias)
      layer.router_bias = tensors_.take(module + "exp_probs_b.bias", {config_.experts.count});
    if (config_.experts.logit_bias)
      layer.router_bias = tensors_.take(module + "ffn_gate_inp.bias", {config_.experts.count});
    if (config_.experts.shared_gate)
      layer.shared_gate = tensors_.take(weight(module + "ffn_gate_inp_shexp"), {hidden});
    if (shared > 0) {
      layer.gate = tensors_.take(weight(module + "ffn_gate_shexp"), {shared, hidden});
      layer.up = tensors_.take(weight(module + "ffn_up_shexp"), {shared, hidden});
      layer.down = tensors_.take(weight(module + "ffn_down_shexp"), {hidden, shared});
    }
    const auto gates = stacked(weight(module + "ffn_gate_exps"), ffn, hidden),
               ups = stacked(weight(module + "ffn_up_exps"), ffn, hidden),
               downs = stacked(weight(module + "ffn_down_exps"), hidden, ffn);
    for (size_t i = 0; i < gates.size(); ++i) layer.experts.push_back({gates[i], ups[i], downs[i]});
    if (config_.experts.biases) {
      load_gguf_biases(module + "ffn_gate_exps", ffn, &ExpertWeights::gate_bias, layer);
      load_gguf_biases(module + "ffn_up_exps", ffn, &ExpertWeights::up_bias, layer);
      load_gguf_biases(module + "ffn_down_exps", hidden, &ExpertWeights::down_bias, layer);
    }
    if (adapter_ != nullptr) attach_experts(layer);
  }

  /// Biases of a layer's experts, which lie in one tensor.
  void load_gguf_biases(const std::string& module, int64_t size, Matrix ExpertWeights::*bias,
                        LayerWeights& layer) {
    const Matrix all = tensors_.take(module + ".bias", {config_.experts.count, size});
    for (size_t i = 0; i < layer.experts.size(); ++i)
      layer.experts[i].*bias = all.slice(static_cast<int64_t>(i), 1, fmt::format("{}:{}", all.name, i));
  }

  /// Adapters call the matrices of a GGUF file by their other names.
  void attach_experts(LayerWeights& layer) {
    const ExpertTensors& names = family_.tensors.experts;
    const std::string module = kLayer.hugging_face + std::to_string(layer_) + ".";
    adapter_->attach(module + names.router, layer.router);
    if (!layer.shared_gate.empty()) adapter_->attach(module + names.shared_gate, layer.shared_gate);
    const auto attach = [&](const std::string& prefix, Matrix& gate, Matrix& up, Matrix& down) {
      adapter_->attach(prefix + names.gate, gate);
      adapter_->attach(prefix + names.up, up);
      adapter_->attach(prefix + names.down, down);
    };
    if (!layer.gate.empty()) attach(module + names.shared, layer.gate, layer.up, layer.down);
    for (size_t i = 0; i < layer.experts.size(); ++i)
      attach(fmt::format("{}{}{}.", module, names.experts, i), layer.experts[i].gate, layer.experts[i].up,
             layer.experts[i].down);
    attach_stacked(layer);
  }

  void load_mlp(LayerWeights& layer) {
    const int64_t hidden = config_.hidden;
    if (config_.layers[static_cast<size_t>(layer_)].experts)
      return named_ == &Name::gguf ? load_gguf_experts(layer) : load_hf_experts(layer);
    if (family_.tensors.fused_gate_up) {
      const Matrix both = linear(kGateUp, int64_t{2} * config_.ffn, hidden);
      layer.gate = both.slice(0, config_.ffn, both.name + ":gate");
      layer.up = both.slice(config_.ffn, config_.ffn, both.name + ":up");
    } else {
      layer.gate = linear(kGate, config_.ffn, hidden);
      layer.up = linear(kUp, config_.ffn, hidden);
    }
    layer.down = linear(kDown, hidden, config_.ffn);
  }

  void load_layer(int32_t number) {
    layer_ = number;
    LayerWeights layer;
    const int64_t hidden = config_.hidden;
    const int64_t queries = int64_t{config_.heads} * config_.head_dim;
    const int64_t keys = int64_t{config_.kv_heads} * config_.head_dim;
    load_norms(layer);
    if (family_.tensors.fused_qkv) {
      const Matrix qkv = linear(kQkv, queries + 2 * keys, hidden);
      layer.q = qkv.slice(0, queries, qkv.name + ":q");
      layer.k = qkv.slice(queries, keys, qkv.name + ":k");
      layer.v = qkv.slice(queries + keys, keys, qkv.name + ":v");
    } else {
      layer.q = linear(kQ, queries, hidden, true);
      layer.k = linear(kK, keys, hidden, true);
      layer.v = linear(kV, keys, hidden);
    }
    if (config_.qk_norm != QkNorm::none) {
      const bool whole = config_.qk_norm == QkNorm::whole;
      layer.q_norm = norm(kQNorm, whole ? queries : config_.head_dim);
      layer.k_norm = norm(kKNorm, whole ? keys : config_.head_dim);
    }
    layer.o = linear(kO, hidden, queries);
    if (config_.sinks) {
      constexpr Name kSinks{"self_attn.sinks", "attn_sinks.weight"};
      layer.sinks = tensors_.take(in_layer(kSinks, named_), {config_.heads});
    }
    load_mlp(layer);
    load_biases(layer);
    // Old checkpoints keep the rope table, which is derived from the configuration.
    constexpr Name kRope{"self_attn.rotary_emb.inv_freq", "self_attn.rotary_emb.inv_freq"};
    tensors_.ignore(in_layer(kRope, named_));
    model_.layers.push_back(std::move(layer));
  }

  TensorMap& tensors_;
  const Family& family_;
  const std::optional<Quantization>& quantization_;
  int64_t further_;
  const char* Name::*named_;
  Adapter* adapter_;
  Model& model_;
  const ModelConfig& config_;
  int32_t layer_ = 0;
};

/// Whether a file is named as PyTorch names weights.
bool is_pickle(const fs::path& file) {
  const fs::path ending = file.extension();
  return ending == ".bin" || ending == ".pt" || ending == ".pth";
}

bool has_pickles(const fs::path& folder) {
  return std::ranges::any_of(fs::directory_iterator(folder),
                             [](const fs::directory_entry& entry) { return is_pickle(entry.path()); });
}

/// The file of a model folder that says where its weights are.
fs::path weights_in(const fs::path& folder) {
  for (const char* name : {"model.safetensors", "model.safetensors.index.json"}) {
    if (fs::is_regular_file(folder / name)) return folder / name;
  }
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".safetensors") found.push_back(entry.path());
  }
  if (found.size() == 1) return found.front();
  if (found.empty() && has_pickles(folder))
    refuse("{}: the folder has no *.safetensors; {}", folder.string(), convert_weights(folder.string()));
  if (found.empty())
    refuse(
        "{}: the folder has no *.safetensors; name a folder with config.json and safetensors, or a GGUF file",
        folder.string());
  refuse("{}: the folder has {} *.safetensors files but no model.safetensors.index.json", folder.string(),
         found.size());
}

bool is_gguf(const std::string& path) {
  const auto file = MappedFile::open(path);
  return file->text().starts_with("GGUF") || path.ends_with(".gguf");
}

void load_gguf(const std::string& path, Adapter* adapter, Model& model) {
  const GgufFile file = GgufFile::open(path);
  const FileConfig description = read_gguf_config(file);
  model.config = description.config;
  TensorMap tensors(path, readable_types(true));
  for (const auto& [name, tensor] : file.tensors()) tensors.add(name, tensor);
  Loader(tensors, description, &Name::gguf, adapter, model).load();
  model.files.push_back(file.file());
}

/// The tensors of the text model inside another, by the names that it has alone. Says what is left out.
TensorMap text_tensors(const TensorMap& all, std::string& notice) {
  constexpr std::pair<std::string_view, std::string_view> kParts[] = {
      {"language_model.model.", "model."},  // as checkpoints were written first
      {"language_model.lm_head.", "lm_head."},
      {"model.language_model.", "model."},  // as transformers writes them since version 4.52
      {"lm_head.", "lm_head."},
  };
  TensorMap text(all.source(), readable_types(false));
  int64_t left_out = 0;
  for (const auto& [name, tensor] : all.all()) {
    const auto* part = std::ranges::find_if(
        kParts, [&, &full = name](const auto& each) { return full.starts_with(each.first); });
    if (part == std::end(kParts))
      ++left_out;
    else
      text.add(std::string(part->second) + name.substr(part->first.size()), tensor);
  }
  if (left_out > 0)
    notice = fmt::format("{}: only the text model is used; {} tensor{} of its other parts {} left out",
                         all.source(), left_out, left_out == 1 ? "" : "s", left_out == 1 ? "is" : "are");
  return text;
}

void load_hugging_face(const fs::path& config, const fs::path& weights, Adapter* adapter, Model& model) {
  const FileConfig description = read_hf_config(config.string());
  model.config = description.config;
  SafetensorsModel file = open_safetensors_model(weights.string());
  if (description.wrapped) file.tensors = text_tensors(file.tensors, model.notice);
  Loader(file.tensors, description, &Name::hugging_face, adapter, model).load();
  model.files = std::move(file.files);
}

}  // namespace

Model load_model(const std::string& path, const std::string& adapter) {
  try {
    if (!fs::exists(path)) {
      const std::string advice = download_advice(path, Hosted::model);
      refuse("{}: no such model; name a GGUF file, a safetensors file or a model folder{}{}", path,
             advice.empty() ? "" : "; ", advice);
    }
    std::optional<Adapter> delta;
    if (!adapter.empty()) delta = Adapter::open(adapter);
    Adapter* merged = delta ? &*delta : nullptr;
    Model model;
    model.path = path;
    if (fs::is_directory(path)) {
      load_hugging_face(fs::path(path) / "config.json", weights_in(path), merged, model);
    } else if (is_gguf(path)) {
      load_gguf(path, merged, model);
    } else if (path.ends_with(".safetensors") || path.ends_with(".safetensors.index.json")) {
      load_hugging_face(fs::path(path).parent_path() / "config.json", path, merged, model);
    } else if (is_pickle(path)) {
      const fs::path folder = fs::path(path).parent_path();
      refuse("{}: these are PyTorch weights; {}", path,
             convert_weights(folder.empty() ? "." : folder.string()));
    } else {
      refuse("{}: this is neither a GGUF file, a safetensors file nor a model folder", path);
    }
    return model;
  } catch (const fs::filesystem_error& error) {
    refuse("{}: {}", path, error.what());
  }
}

}  // namespace sheaf
