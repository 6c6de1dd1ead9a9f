"""Settings to begin with: what `bothworlds serve --example` prints, and the demonstration plays."""

EXAMPLE = """\
# A decision service.
#     bothworlds serve --check ads.toml    is this right?
#     bothworlds serve ads.toml            serve it: http://127.0.0.1:8080/ has a page for browsers

store = "ads.sqlite"       # everything is kept here, beside this file
durability = "full"        # answered once it is on the disk; "process" survives the process, not the machine
host = "127.0.0.1"         # whoever listens beyond this machine needs tokens, and should have TLS
port = 8080
# certificate = "cert.pem" # TLS, two files
# key = "key.pem"
# most_bytes = 1_000_000   # of the body of a request

# [[tokens]]: bothworlds token shop --scope decide --scope reward >> ads.toml

[experiments.banners]      # as many experiments as you like, each with a name
arms = ["summer sale", "free shipping", "new arrivals", "loyalty card"]
algorithm = "matched"      # a tuning of LCTsallisINF, or a table as in studies: { kind = "LinUCB" }
reward_range = [0.0, 1.0]
window = "10 minutes"      # without a reward within this time,
default_reward = 0.0       # a decision gets this one; leave the line out for 0
holdout = 0.05             # this share of the decisions is uniform, to compare with
# safe_arm = "loyalty card"  # answered where nothing can be stored; otherwise 503
# other = "mobile evening" # what an unknown context counts as; otherwise it is refused
# problem = "ads.json"     # instead of arms and contexts: a problem with features of your own

[experiments.banners.contexts]  # and how often they come; or a list of names: contexts = ["a", "b"]
"mobile morning" = 0.3
"mobile evening" = 0.3
"desktop morning" = 0.2
"desktop evening" = 0.2
"""
