# A Homebrew formula for the archives of a release. `scripts/package --formula URL` fills in what is marked with a dollar.
class Contextweaver < Formula
  desc "$description"
  version "$version"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "$url/contextweaver-$version-aarch64-apple-darwin.tar.gz"
      sha256 "$macos_arm"
    end
    on_intel do
      url "$url/contextweaver-$version-x86_64-apple-darwin.tar.gz"
      sha256 "$macos_intel"
    end
  end
  on_linux do
    on_arm do
      url "$url/contextweaver-$version-aarch64-unknown-linux-musl.tar.gz"
      sha256 "$linux_arm"
    end
    on_intel do
      url "$url/contextweaver-$version-x86_64-unknown-linux-musl.tar.gz"
      sha256 "$linux_intel"
    end
  end

  def install
    bin.install "contextweaver"
    bash_completion.install "share/bash-completion/completions/contextweaver"
    zsh_completion.install "share/zsh/site-functions/_contextweaver"
    fish_completion.install "share/fish/vendor_completions.d/contextweaver.fish"
    man1.install Dir["share/man/man1/*.1"]
  end

  test do
    (testpath/"tools.json").write '[{"name": "get_oncall", "description": "Who is on call"}]'
    assert_match "get_oncall", shell_output("#{bin}/contextweaver route --catalog tools.json 'who is on call'")
  end
end
