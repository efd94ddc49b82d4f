/**
 * Forms of secrets in the rules and rule tests of other projects; no value is taken over. A line is one rule:
 * `rule = name: shape` for a value that its name makes a secret, `rule: shape` for one known by itself, `rule | text` for
 * a whole text with the secret in `«»`. A shape is text with runs: `{h32}` is 32 characters of the alphabet `h`.
 * Public identifiers and publishable keys among the rules are left out.
 */
export const FORMS: Readonly<Record<string, string>> = {
  gitleaks: String.raw`
1password-secret-key: A3-{U6}-{U11}-{U5}-{U5}-{U5}
1password-service-account-token: ops_eyJ{a260}
adafruit-api-key = adafruit: {w32}
adobe-client-secret: p8e-{l32}
age-secret-key: AGE-SECRET-KEY-1{B58}
airtable-api-key = airtable: {l17}
algolia-api-key = algolia: {l32}
alibaba-access-key-id: LTAI{l20}
alibaba-secret-key = alibaba: {l30}
anthropic-admin-api-key: sk-ant-admin01-{w93}AA
anthropic-api-key: sk-ant-api03-{w93}AA
artifactory-api-key: AKCp{a69}
artifactory-reference-token: cmVmd{a59}
asana-client-secret = asana: {l32}
atlassian-api-token: ATATT3{w186}
atlassian-old-token = jira: {l20}{h4}
authress-service-client-access-key: sc_{l10}.{l5}.acc_{l20}.{l48}
aws-access-token: AKIA{A16}
azure-ad-client-secret: {a3}8Q~{a34}
beamer-api-token = beamer: b_{w44}
bitbucket-client-secret = bitbucket: {w64}
bittrex-secret-key = bittrex: {l32}
cisco-meraki-api-key = meraki: {h40}
clickhouse-cloud-api-secret-key: 4b1d{a38}
clojars-api-token: CLOJARS_{l60}
cloudflare-api-key = cloudflare: {w40}
cloudflare-global-api-key = cloudflare: {h37}
cloudflare-origin-ca-key: v1.0-{h24}-{h146}
codecov-access-token = codecov: {l32}
cohere-api-token = cohere: {a40}
coinbase-access-token = coinbase: {w64}
confluent-secret-key = confluent: {l64}
contentful-delivery-api-token = contentful: {w43}
curl-auth-header | curl -X POST https://api.example.com/v1/items -H "X-Api-Key: «{a24}»"
curl-auth-header-bearer | curl -i -H 'Authorization: Bearer «{a32}»' https://example.com
curl-auth-header-token | curl --header "Authorization: Token «{h40}»" https://example.com/api
curl-auth-user | curl -u "deploy:«{p14}»" https://example.com/artifacts
curl-auth-user-long | curl -sSL https://example.com --user 'ci:«{a20}»'
database-password | db_password = "«{p12}»"
databricks-api-token: dapi{h32}
datadog-access-token = datadog: {l40}
defined-networking-api-token: dnkey-{w26}-{w52}
digitalocean-access-token: doo_v1_{h64}
digitalocean-pat: dop_v1_{h64}
discord-api-token = discord: {h64}
discord-client-secret = discord: {w32}
doppler-api-token: dp.pt.{l43}
droneci-access-token = droneci: {l32}
dropbox-api-token = dropbox: {l15}
dropbox-long-lived-api-token = dropbox: {l11}AAAAAAAAAA{w43}
dropbox-short-lived-api-token: sl.{w135}
duffel-api-token: duffel_live_{w43}
dynatrace-api-token: dt0c01.{U24}.{U64}
easypost-api-token: EZAK{a54}
easypost-test-api-token: EZTK{a54}
etsy-access-token = etsy: {l24}
facebook-access-token: {n16}|{w27}
facebook-page-access-token: EAAC{a120}
facebook-secret = facebook: {h32}
fastly-api-token = fastly: {w32}
finicity-api-token = finicity: {h32}
finicity-client-secret = finicity: {l20}
finnhub-access-token = finnhub: {l20}
flickr-access-token = flickr: {l32}
flutterwave-encryption-key: FLWSECK_TEST-{h12}
flutterwave-secret-key: FLWSECK_TEST-{h32}-X
flyio-access-token: fo1_{w43}
flyio-machine-token: fm2_{b120}
frameio-api-token: fio-u-{w64}
freemius-secret-key | 'secret_key' => '«sk_{s29}»',
freshbooks-access-token = freshbooks: {l64}
gcp-api-key: AIza{w35}
generic-api-key | credentials = "«{l24}»"
generic-api-key-auth | "auth": "«{a32}»"
generic-api-key-key | key = "«{a40}»"
github-app-token: ghu_{a36}
github-fine-grained-pat: github_pat_{a82}
github-oauth: gho_{a36}
github-pat: ghp_{a36}
github-refresh-token: ghr_{a36}
gitlab-cicd-job-token: glcbt-{n2}_{w20}
gitlab-deploy-token: gldt-{w20}
gitlab-feature-flag-client-token: glffct-{w20}
gitlab-feed-token: glft-{w20}
gitlab-incoming-mail-token: glimt-{w25}
gitlab-kubernetes-agent-token: glagent-{w50}
gitlab-oauth-app-secret: gloas-{w64}
gitlab-pat: glpat-{w20}
gitlab-ptt: glptt-{h40}
gitlab-rrt: GR1348941{w20}
gitlab-runner-authentication-token: glrt-{w20}
gitlab-scim-token: glsoat-{w20}
gitlab-session-cookie | Cookie: theme=dark; _gitlab_session=«{l32}»
gitter-access-token = gitter: {w40}
gocardless-api-token = gocardless: live_{w40}
grafana-api-key: eyJrIjoi{a80}
grafana-cloud-api-token: glc_{b60}
grafana-service-account-token: glsa_{a32}_{h8}
harness-api-key: pat.{w22}.{a24}.{a20}
hashicorp-tf-api-token: {a14}.atlasv1.{w67}
hashicorp-tf-password | administrator_login_password = "«{a14}»"
heroku-api-key = heroku: {u}
heroku-api-key-v2: HRKU-AA{w58}
hubspot-api-key = hubspot: {V}
huggingface-access-token: hf_{L34}
huggingface-organization-api-token: api_org_{L34}
infracost-api-token: ico-{a32}
intercom-api-key = intercom: {w60}
intra42-client-secret: s-s4t2ud-{h64}
jfrog-api-key = artifactory: {l73}
jfrog-identity-token = jfrog: {l64}
jwt: {jwt}
jwt-base64: ZXlKaGJHY2lPaUpJVXpJMU5pSXNJ{a90}
kraken-access-token = kraken: {w86}
kubernetes-secret-yaml | kind: Secret\nmetadata:\n  name: app\ndata:\n  password: «{q18}»
kubernetes-secret-tls | apiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\ndata:\n  tls.key: «LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t{b120}»
kucoin-access-token = kucoin: {h24}
kucoin-secret-key = kucoin: {u}
launchdarkly-access-token = launchdarkly: {w40}
linear-api-key: lin_api_{l40}
linear-client-secret = linear: {h32}
linkedin-client-secret = linkedin: {l16}
lob-api-key = lob: live_{h35}
mailchimp-api-key: {h32}-us1{n1}
mailgun-private-api-token = mailgun: key-{h32}
mailgun-signing-key = mailgun: {h32}-{h8}-{h8}
mattermost-access-token = mattermost: {l26}
maxmind-license-key: {a6}_{a29}_mmk
messagebird-api-token = messagebird: {l25}
microsoft-teams-webhook | https://contoso.webhook.office.com/webhookb2/«{u}@{u}/IncomingWebhook/{l32}/{u}»
netlify-access-token = netlify: {w43}
new-relic-browser-api-token: NRJS-{h19}
new-relic-insert-key: NRII-{a32}
new-relic-user-api-key: NRAK-{U27}
notion-api-token: ntn_{n11}{a35}
npm-access-token: npm_{a36}
nuget-config-password | <add key="ClearTextPassword" value="«{p12}»" />
nytimes-access-token = nytimes: {w32}
octopus-deploy-api-key: API-{U26}
okta-access-token = okta: 00{w40}
openai-api-key: sk-proj-{w74}T3BlbkFJ{w74}
openshift-user-token: sha256~{w43}
perplexity-api-key: pplx-{a48}
plaid-api-token = plaid: access-production-{u}
plaid-secret-key = plaid: {l30}
planetscale-api-token: pscale_tkn_{w43}
planetscale-oauth-token: pscale_oauth_{w43}
planetscale-password: pscale_pw_{w43}
postman-api-token: PMAK-{h24}-{h34}
prefect-api-token: pnu_{a36}
private-key | -----BEGIN OPENSSH {PK}-----\n«{b70}»\n{b70}\n{b32}\n-----END OPENSSH {PK}-----
privateai-api-token = private_ai: {l32}
pulumi-api-token: pul-{h40}
pypi-upload-token: pypi-AgEIcHlwaS5vcmc{w80}
rapidapi-access-token = rapidapi: {w50}
readme-api-token: rdme_{l70}
rubygems-api-token: rubygems_{h48}
scalingo-api-token: tk-us-{w48}
sendbird-access-token = sendbird: {h40}
sendgrid-api-token: SG.{w22}.{w43}
sendinblue-api-token: xkeysib-{h64}-{l16}
sentry-access-token = sentry: {h64}
sentry-org-token: sntrys_eyJpYXQiO{a60}LCJyZWdpb25fdXJs{a40}_{b43}
sentry-user-token: sntryu_{h64}
settlemint-personal-access-token: sm_pat_{a16}
settlemint-service-access-token: sm_sat_{a16}
shippo-api-token: shippo_live_{h40}
shopify-access-token: shpat_{h32}
shopify-custom-access-token: shpca_{h32}
shopify-private-app-access-token: shppa_{h32}
shopify-shared-secret: shpss_{h32}
sidekiq-secret = BUNDLE_GEMS__CONTRIBSYS__COM: {h8}:{h8}
sidekiq-sensitive-url | source "https://{h8}:«{h8}»@gems.contribsys.com/"
slack-app-token: xapp-1-{U11}-{n13}-{h64}
slack-bot-token: xoxb-{n12}-{n12}-{a24}
slack-config-access-token: xoxe.xoxb-1-{U166}
slack-config-refresh-token: xoxe-1-{U146}
slack-legacy-bot-token: xoxb-{n12}-{a24}
slack-user-token: xoxp-{n12}-{n12}-{n12}-{h32}
slack-webhook-url | https://hooks.slack.com/services/«T{U8}/B{U10}/{a24}»
snyk-api-token = snyk: {u}
sonar-api-token = sonar: {h40}
sourcegraph-access-token: sgp_{h16}_{h40}
square-access-token: sq0atp-{w22}
squarespace-access-token = squarespace: {u}
stripe-access-token: sk_live_{a24}
sumologic-access-token = sumo: {l64}
telegram-bot-api-token: {n10}:A{w34}
travisci-access-token = travis: {l22}
twilio-api-key: SK{h32}
twitch-api-token = twitch: {l30}
twitter-access-secret = twitter: {l45}
twitter-access-token = twitter: {n18}-{a30}
twitter-api-key = twitter: {l25}
twitter-api-secret = twitter: {l50}
twitter-bearer-token = twitter: AAAAAAAAAAAAAAAAAAAAAA{a90}
typeform-api-token: tfp_{w59}
vault-batch-token: hvb.{w150}
vault-service-token: hvs.{w95}
vault-service-token-old: s.{a24}
yandex-access-token: t1.{w20}.{w86}
yandex-api-key = yandex: AQVN{w36}
yandex-aws-access-token = yandex: YC{w38}
zendesk-secret-key = zendesk: {l40}
`,
  trufflehog: String.raw`
abuseipdb | You can find a abuseipdb secret «{l80}» within
adafruitio: aio_{a28}
airtablepersonalaccesstoken: pat{a14}.{h64}
airtableoauth | airtable access token: «{a60}.v1.{a20}.{w86}»
alchemy: alcht_{a30}
asanapersonalaccesstoken | asana_pat = '«{n1}/{n16}:{h32}»'
azurestorage | DefaultEndpointsProtocol=https;AccountName=media;AccountKey=«{b86}==»;EndpointSuffix=core.windows.net
azuresastoken | https://media.blob.core.windows.net/files?sp=r&st=2026-01-02T03:04:05Z&spr=https&sv=2022-11-02&sr=c&sig=«{a42}%3D»
azure_batch | Batch: https://jobs.westeurope.batch.azure.com key: «{b86}==»
azuredevopspersonalaccesstoken | azure devops token «{l52}»
azureservicebus | Endpoint=sb://bus.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=«{b43}=»
bitbucketapppassword: ATBB{a24}{H8}
browserstack | BROWSERSTACK_ACCESS_KEY=«{a20}»
buildkite: bkua_{h40}
circleci: CCIPAT_{a22}_{h40}
contentfulpersonalaccesstoken: CFPAT-{w43}
couchbase | couchbases://cb.example.com username=app password=«{p16}»
crowdin | crowdin token "«{h80}»"
databrickstoken: dapi{h32}-2
denodeploy: ddp_{a36}
discordbottoken: M{a23}.{w6}.{w38}
discordwebhook | https://discord.com/api/webhooks/{n18}/«{w68}»
docker_auth_config | {"auths":{"https://index.docker.io/v1/":{"auth":"«{q24}»"}}}
dockerhub: dckr_pat_{w27}
endorlabs: endr+{w16}
figmapersonalaccesstoken: figd_{w40}
flightlabs | "access_key": "«eyJ{a60}»"
ftp | ftp://deploy:«{a14}»@files.example.com/www
gemini: master-{a20}
gcp | "private_key_id": "«{h40}»",\n"private_key": "-----BEGIN {PK}-----\n{b64}\n-----END {PK}-----\n"
googleoauth2: ya29.{w140}
grafanaserviceaccount: glsa_{a32}_{h8}
groq: gsk_{a52}
gumroad | gumroad_access_token = "«{w43}»"
hubspot_privateapp: pat-na1-{u}
intra42: s-s4t2af-{h64}
ipinfo | curl "https://ipinfo.io/8.8.8.8?token=«{h14}»"
jdbc | jdbc:sqlserver://db.example.com:1433;databaseName=shop;user=app;password=«{p14}»;encrypt=false
jdbc-query | jdbc:postgresql://localhost:5432/shop?sslmode=disable&password=«{a14}»&user=app
jdbc-tcp | jdbc:mysql://app:«{a12}»@tcp(localhost:3306)/shop
klaviyo: pk_{h34}
langfuse: sk-lf-{u}
langsmith: lsv2_pt_{h32}_{h10}
launchdarkly: api-{u}
ldap | ldaps://127.0.0.1:636 bind 'cn=admin,dc=example' pass '«{p18}»'
linearapi: lin_api_{a40}
mailgun: {h32}-{h8}-{h8}
mandrill | mandrill_key="«{w22}»"
mapboxsecret: sk.eyJ{a84}.{a22}
mongodb | mongodb+srv://app:«{a16}»@cluster0.example.mongodb.net/shop?retryWrites=true
netlify: nfp_{a36}
netsuite | netsuite consumer_secret = "«{h64}»"
ngrok: 2{a26}_{a21}
notion: secret_{a43}
nvapi: nvapi-{w64}
okta | okta_api_token: «00{w40}»
openaiadmin: sk-admin-{w58}T3BlbkFJ{w58}
opsgenie | OPSGENIE_API_KEY=«{u}»
pagerdutyapikey | pagerduty token u+«{w18}»
paystack: sk_live_{h40}
planetscaledb | pscale host aws.connect.psdb.cloud username {l20} password pscale_pw_«{w43}»
posthog: phx_{a43}
postgres | postgresql://app:«{p14}»@10.2.0.7:5432/shop
privatekey | private_key = "-----BEGIN RSA {PK}-----\n«{b64}»\n{b64}\n-----END RSA {PK}-----"
rabbitmq | amqps://app:«{a16}»@mq.example.com:5671/vhost
razorpay | key_id: rzp_live_{a14}, key_secret: «{a24}»
redis | redis://:«{a20}»@cache.example.com:6379/0
replicate: r8_{a37}
rootly: rootly_{h64}
saladcloudapikey: salad_cloud_user_{a7}_{a40}
salesforce: 00D{a12}!{w96}
sentryorgtoken: sntrys_eyJ{b150}_{b43}
snowflake | snowflake account=ab12345.eu-west-1 username=loader password=«{p16}»
sonarcloud: squ_{h40}
spotifykey | spotify_client_secret="«{h32}»"
sqlserver | Server=db.example.com;Initial Catalog=shop;User ID=sa;Password=«{p14}»;Persist Security Info=true;
sqlserver-pwd | <add name="Shop" value="SERVER=db1;DATABASE=shop;user=app;pwd=«{a12}»;encrypt=true;" />
stripe: rk_live_{a99}
supabasetoken: sbp_{h40}
tailscale: tskey-api-{a12}-{a32}
teamsworkflow | microsoftteams https://contoso.webhook.office.com/webhookb2/{u}@{u}/IncomingWebhook/«{h32}»/{u}
telegrambottoken | https://api.telegram.org/bot«{n10}:{w35}»/getMe
trelloapikey | https://api.trello.com/1/members/me?key={h32}&token=«ATTA{h72}»
twilio | TWILIO_AUTH_TOKEN="«{h32}»"
uri | https://app:«{a14}»@example.com/feed
uri-token | git clone https://«{h40}»@git.example.com/team/app.git
vercel | vercel token "«{a24}»"
voiceflow: VF.DM.{h24}.{a16}
webexbot | webexbot token «{w64}_{w4}_{u}»
xai: xai-{a80}
yousign | yousign api key "«{a32}»"
zapierwebhook | https://hooks.zapier.com/hooks/catch/{n7}/«{l7}»/
zulipchat | [api]\nemail=bot@chat.example.com\nkey=«{a32}»\nsite=https://chat.example.com
`,
  noseyparker: String.raw`
np.adafruitio.1: aio_{a28}
np.auth0.2 | AUTH0_CLIENT_SECRET='«{w64}»'
np.aws.2 | aws_secret_access_key = '«{b40}»'
np.aws.4 | AWS_SESSION_TOKEN="«{b200}»"
np.azure.1 | "ConnectionString": "Endpoint=https://app.azconfig.io;Id={w4};Secret=«{b43}=»"
np.bitbucket.1: BBDC-{b44}
np.blynk.1 | https://fra1.blynk.cloud/external/api/get?token=«{w32}»&pin=V1
np.codeclimate.1 | CODECLIMATE_REPO_TOKEN=«{h64}»
np.crates.io.1: cio{a32}
np.dependency_track.1: odt_{a32}
np.django.1 | SECRET_KEY = '«{s50}»'
np.dynatrace.1: dt0s01.{U24}.{U64}
np.facebook.1 | FACEBOOK_APP_SECRET = "«{h32}»"
np.figma.1 | curl -H 'X-FIGMA-TOKEN: «{n6}-{u}»' https://api.figma.com/v1/files
np.firecrawl.1: fc-{h32}
np.generic.1 | private static String CLIENT_SECRET = "«{h40}»";
np.generic.2 | buildConfigField 'String' , 'API_KEY' , '"«{h32}»"'
np.generic.3 | user = 'operator'  # some comment\npassword = '«{z6}{n6}»'  # another
np.generic.4 | user = Operator\npassword = «{z6}_{z6}{n2}»
np.generic.5 | private const string DeployPfxPassword = "«{x16}»";
np.generic.5b | "vm_password": "«{P6}{n3}!@#»",
np.generic.6 | :password       => '«{n1}{z5}{n4}»',
np.generic.6b | common.then_log_in({username: 'operator', password: '«{a16}»'});
np.generic.7 | sender.Credentials = new NetworkCredential("bot@example.com", "«{z16}»");
np.generic.8 | new DirectoryEntry("LDAP://EXAMPLE.COM",\n  "ADMIN@EXAMPLE.COM",\n  "«{P4}{n4}»");
np.generic.9 | <add key="FromEmailPassword" value="«{P13}$»"/>
np.generic.10 | <add key="ConnectionString" value="Server=db,1433;Database=B2B;User ID=app;Password=«#{z4}{n1}{z2}{n1}»;Trusted_Connection=False" />
np.generic.11 | echo "The password is '«{P6}{n3}»'"
np.generic.12 | ensure the password is "«{z9}{n2}»" and press the button
np.generic.13 | 2. Ensure the password for user 'postgres' is '«{z5}{n3}»' or change the file.
np.gitalk.1 | clientID: '{h20}', clientSecret: '«{h40}»', repo: 'blog'
np.google.4: GOCSPX-{w28}
np.gradle.1 | credentials {\n  username 'deploy'\n  password '«{a14}»'\n}
np.http.1 | Authorization: Basic «{q20}»
np.http.2 | GET /resource HTTP/1.1\nHost: server.example.com\nAuthorization: Bearer «{w3}.{a3}.{w2}-{a5}»
np.jenkins.1 | jenkins_passwd = '«{h34}»'
np.jenkins.2 | curl -X POST https://jenkins.example.com/build -H 'Jenkins-Crumb:«{h32}»'
np.jina.1: jina_{h32}{w28}
np.kagi.1 | kagi_session token=«{w43}.{w43}»
np.kubernetes.1 | kubeadm join 10.0.0.5:6443 --token «{l6}.{l16}»
np.netrc.1 | machine api.example.com login deploy password «{a16}»
np.newrelic.2: NRAK-{U27}
np.nuget.1: oy2{l43}
np.odbc.1 | Data Source=10.20.30.40,1433;Initial Catalog=Shop;User ID=app;Password=«{a12}»;
np.odbc.2 | Provider=SQLNCLI;Server=db1;Database=Shop;Uid=app;Pwd=«{a10}»;
np.odbc.3 | connectionString="Server=db1; Database=Shop; User Id=app; password= «{P2}!{a4}_={a6}»" providerName="System.Data.SqlClient"
np.particleio.1 | curl https://api.particle.io/v1/devices?access_token=«{h40}»
np.pem.1 | -----BEGIN EC {PK}-----\nMHcCAQEEI{b55}\n«{b64}»\n-----END EC {PK}-----
np.phpmailer.1 | $mail->Host = 'smtp.example.com';\n$mail->Username = 'app@example.com';\n$mail->Password = '«{z2}!{z12}»';
np.postgres.1 | "REDSHIFT": "postgres://app:«{P4}{n4}»@warehouse.example.com:5439/lake",
np.psexec.1 | psexec \\10.0.94.120 -u Administrator -p «{z4}_{a8}» cmd /c dir
np.pwhash.1: $1{D}{a8}{D}{a22}
np.pwhash.2: $2a$12{D}{a53}
np.pwhash.4: $6{D}{a8}{D}{a86}
np.react.1 | REACT_APP_SECRET_TOKEN=«{a24}»
np.sauce.1 | SAUCE_ACCESS_KEY=«{u}»
np.segment.1: sgp_{a64}
np.stackhawk.1: hawk.{w20}.{w20}
np.tavily.1: tvly-{a32}
np.teamcity.1: eyJ0eXAiOiAiVENWMiJ9.{w36}.{w48}
np.thingsboard.1 | curl -X POST https://demo.example.com/api/v1/«{a20}»/telemetry --header "Content-Type:application/json"
np.truenas.1: {n1}-{a64}
np.twitter.2 | twitter_oauth_secret: '«{a45}»'
np.wireguard.1 | [Interface]\nAddress = 10.20.0.3/32\nPrivateKey = «{b43}=»\nDNS = 9.9.9.9
np.wireguard.2 | PresharedKey = «{b43}=»\nAllowedIPs = 0.0.0.0/0
`,
  credsweeper: String.raw`
api.toml | api_key = "«{a16}»"
auth.template | auth: "«{a20}»"
aws-mws-key: amzn.mws.{u}
bitbucket-repository-token: ATCTT3xFfGN0{w171}={H8}
brevo: xsmtpsib-{h64}-{a16}
cmd-password-gpg | gpg --decrypt --passphrase «{a11}» --output plain.txt in.gpg
cmd-password-mysql | mysql -u root --password «{a11}»
cmd-password-powershell | -Domain 'localhost' -Password '«{P5}{n2}ss@!»'
cmd-credential-uuid | --super-secret_token «{u}»
cmd-credential-bearer | curl --oauth2-bearer "«{a22}==»" https://example.com
convert-to-secure-string | ConvertTo-SecureString "«{p14}»" -AsPlainText -Force
cookie | Set-Cookie: session=«{a40}»; Path=/; HttpOnly
credential | $credential = "«{a18}»"
curl-user-password | curl -u admin:«{p12}» https://example.com/api
deepseek: sk-{h32}
doc-pair-colon | Password:«{c10}»
doc-pair-korean | 비밀번호:«{c10}»
doc-pair-pw | pw:«{c10}»
doc-pair-equals | Password=«{c10}»
doc-pair-pwd | pwd:«{c10}»
doc-pair-korean-short | 비번:«{c10}»
doc-pair-space | Password «{c10}»
doc-pair-pass | pass:«{c10}»
doc-pair-korean-code | 암호:«{c10}»
doc-pair-parens | PASSWORD(«{c10}»)
doc-pair-flag | --pass «{c10}»
doc-pair-is | password is «{c10}»
doc-pair-default | default password:«{c10}»
doc-pair-korean-loan | 패스워드:«{c10}»
doc-pair-json | "password":"«{c10}»"
doc-pair-passwd | passwd=«{c10}»
doc-pair-slash | P/W:«{c10}»
doc-pair-new | new password is «{c10}»
doc-pair-arrow | password=>«{c10}»
doc-various-parens | master@10.76.54.32(pw:«{c8}»)
doc-various-id | ID:ops@example.com PW:«{c8}»
doc-various-id-pass | ID-master / PASS - «{c8}»
doc-various-element | <ID>master</ID> <PW>«{c8}»</PW>
doc-various-of | pwd of master is «{c8}»
doc-various-port | password for master:«{c8}»
doc-various-both | ID/PW: master/«{c8}»
doc-various-triple | 10.76.54.32 (master/«{c8}»)
doc-various-in | password in staging is «{c8}»
dropbox-app-secret | dropbox app secret = "«{l15}»"
instagram: IGQVJ{w120}
key | key: "«{a32}»"
nonce | nonce = "«{a24}»"
password.gradle | password = "«{p11}»"
password.patch | + "password": "«{a10}»"
paypal-braintree: access_token$production{D}{l16}{D}{h32}
picatic: sk_live_{h32}
salt | salt = "«{a22}»"
secret.groovy | def secret = "«{a20}»"
square-oauth-secret: sq0csp-{w43}
token.hs | token = "«{a28}»"
url-credentials | jdbc:oracle:thin://scott:«{p10}»@db.example.com
`,
  'detect-secrets': String.raw`
artifactory: AKCp{a10}{a60}
aws-secret | aws_secret_access_key = "«{b40}»"
azure-storage | AccountKey=«{b86}==»
basic-auth | https://operator:«{a10}»@example.com
cloudant | cloudant_password = "«{h64}»"
cloudant-url | https://{z8}:«{h64}»@account.cloudant.com
db2 | database=test;hostname=db.example.com;port=1;protocol=tcpip;uid=app;pwd=«{a9}»
db2-double-colon | pwd::«{z6}!{z5}{n2}»
db2-flag | dashdb-password = "«{z4}{n4}»"
discord: M{a23}.{w6}.{w27}
github: ghs_{a36}
gitlab: glpat-{w24}
ibm-cloud-iam | ibm_cloud_iam_api_key: «{w44}»
ibm-cos-hmac | "cos_hmac_keys": {"secret_access_key": "«{h48}»"}
jwt: {jwt}
keyword-brackets | some_dict["secret"] = "«{s20}»"
keyword-colon | 'theapikey': '«{s22}»'
keyword-equals-bare | my_password=«{p16}»
keyword-at | apikey = @"«{s22}»"
keyword-semicolon | private_key '«{s22}»';
mailchimp: {h32}-us{n1}
npm | //registry.npmjs.org/:_authToken=«{u}»
npm-auth | _auth=«{q30}»
sendgrid: SG.{w22}.{w43}
slack-webhook | https://hooks.slack.com/services/«T{U8}/B{U8}/{a24}»
softlayer-flag | --softlayer-api-key "«{h64}»"
softlayer-flag-equals | --softlayer-api-key=«{h64}»
softlayer-url | http://api.softlayer.com/soap/v3/«{h64}»
softlayer-colon | softlayer-key : «{h64}»
softlayer-walrus | "softlayer_key" := "«{h64}»"
softlayer-short | slapikey:= «{h64}»
square: sq0csp-{w43}
stripe: rk_live_{a32}
telegram: {n9}:{w35}
twilio: AC{h32}
`,
  secretlint: String.raw`
1password: ops_eyJ{a300}
anthropic: sk-ant-api03-{w95}
aws-account | AWS_SECRET_ACCESS_KEY="«{b40}»"
azure | AZURE_CLIENT_SECRET=«{a3}8Q~{a34}»
basicauth | https://operator:«{a16}»@staging.example.com
cloudflare | CLOUDFLARE_API_TOKEN=«{w40}»
database-mongodb | mongodb://root:«{p12}»@db.example.com:27017/admin
database-mysql | mysql://jane:«{a14}»@10.2.3.4:3306/shop
database-postgres | postgresql://jane:«{a14}»@db.example.com/shop
databricks: dapi{h32}
docker | DOCKER_PAT=dckr_pat_«{w27}»
gcp | "private_key": "-----BEGIN {PK}-----\n«{b64}»\n{b64}\n-----END {PK}-----\n",
github: ghp_{a36}
grafana: glsa_{a32}_{h8}
groq: gsk_{a52}
huggingface: hf_{a34}
linear: lin_api_{a40}
notion: secret_{a43}
npm | //registry.npmjs.org/:_authToken=npm_«{a36}»
openai: sk-{a20}T3BlbkFJ{a20}
privatekey | -----BEGIN DSA {PK}-----\n{b64}\n«{b64}»\n-----END DSA {PK}-----
sendgrid: SG.{w22}.{w43}
shopify: shpat_{h32}
slack: xoxa-2-{n12}-{n12}-{h32}
stripe: sk_live_{a99}
vercel: vcp_{a56}
`,
  whispers: String.raw`
aws-credentials | [default]\naws_access_key_id = AKIA{A16}\naws_secret_access_key = «{b40}»
beans-password | <ss:user name="admin" password="«{a16}_{a8}»" authorities="ROLE_USER" />
beans-accesskey | <ss:user name="admin" accesskey="«{a16}_{a8}»" authorities="ROLE_USER" />
build.gradle | authentication(userName: "root", password: "«{z9}{n2}»")
dockercfg | {"https://index.docker.io/v1/": {"auth": "«{q28}»", "email": "a@example.com"}}
dockerfile | ENV DB_PASSWORD «{a14}»
fixture.cs | auth.Add("token", "«{h32}»");
fixture.cs-fallback | Environment.GetEnvironmentVariable("API_TOKEN") ?? "«{h32}{z9}{n2}»";
fixture.c | char static_password[255] = "«{z9}{n2}»";
fixture.rb-symbol | auth = {:user => "admin", :token => "«{h32}»"}
fixture.rb-index | auth[:token] = "«{h32}»"
fixture.rb-fallback | STATIC_TOKEN = ENV['API_TOKEN'] || '«{h32}»'
fixture.kts | var token: String = "«{h32}»"
fixture.scala | val apiKey = "«{h32}»"
fixture.tf | variable "db_password" {\n  default = "«{a14}»"\n}
groups.xml | <Properties action="U" cpassword="«{b43}»" changeLogon="0" />
hardcoded.yml | credentials:\n  login: admin\n  password: «{z7}{n2}»
hardcoded.yml-list | static_passwords:\n  - "«{P9}{n1}»"
htpasswd | admin:$apr1{D}{a8}$«{a22}»
java.properties | sonar.jdbc.password=«{z9}{n2}»
java.properties-key | api.key=«{a36}»
jdbc.xml | connectionURL="jdbc:mysql://localhost/authority?user=dbuser&amp;password=«{z9}{n1}»"
jdbc.xml-pwd | connectionURL="jdbc:mysql://localhost/authority?user=dbuser&amp;pwd=«{z9}{n1}»"
jenkins.xml | <apiToken>{AQAAABAAAAAw«{b64}»}</apiToken>
language.go | password := "«{z9}{n2}»"
language.php | $this->password = "«{z9}{n2}»";
language.py-default | os.getenv("API_TOKEN", "«{h32}»")
language.py-keyword | db.connect(user="app", passwd="«{z9}{n2}»")
language.sh-default | API_TOKEN={D}{API_TOKEN:-«{a16}_{a9}»}
language.sh-docker | docker run -it -e DRONE_TOKEN=«{a16}_{a9}» -e DRONE_ID=1 image
language.sh-curl | curl --digest -u admin:«{a16}_{a9}» https://localhost
language.sh-tls | curl --tlspassword «{a16}_{a9}» https://localhost
language.sh-wget | wget --http-password=«{a16}_{a9}» https://localhost
nginx.conf | proxy_set_header Authorization "Basic «{q24}»";
npmrc | //registry.example.com/:_password="«{q24}»"
passwords.xml | <passwd>«{z9}{n1}»</passwd>
passwords.xml-item | <item>DB_PASSWORD=«{z9}{n1}»</item>
passwords.json | {"db": {"passphrase": "«{z9}{n1}»"}}
pip.conf | index-url = https://deploy:«{z9}{n2}»@pypi.example.com/simple
putty.ppk | PuTTY-User-Key-File-2: ssh-rsa\nPublic-Lines: 1\n{b64}\nPrivate-Lines: 1\n«{b64}»\nPrivate-MAC: {h40}
pypirc | [server]\nrepository: https://pypi.example.com\nusername: deploy\npassword: «{z9}{n2}»
runtime.exs | config :app, App.Endpoint,\n  secret_key_base: "«{b64}»"
settings.ini | [db]\npasswd = «{z9}{n2}»
webhooks-hubspot | https://api.hubapi.com/webhooks/v1/{n6}/«{a24}»
webhooks-outlook | https://outlook.office.com/webhook/«{u}@{u}/IncomingWebhook/{h32}/{u}»
`,
};

/** Forms that audits of this product found missed. Rules were written for them. */
export const AUDITED = String.raw`
cookie | Cookie: sid=«{a32}»; theme=dark
set-cookie | < Set-Cookie: connect.sid=«s%3A{a32}.{a43}»; Path=/; HttpOnly
azure-sas | https://media.blob.core.windows.net/in?sv=2021-08-06&ss=b&srt=sco&sp=rwdlac&se=2026-12-31&sig=«{a41}%2F{a2}%3D»
userinfo-token | remote: https://«{a36}»@github.example.com/org/repo.git
tls.key | data:\n  tls.crt: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t{b80}\n  tls.key: «LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQ{b100}»
discord | client.login('«M{a23}.{w6}.{w38}»')
telegram | bot = TeleBot("«{n10}:AA{w33}»")
grafana: glsa_{a32}_{h8}
notion: secret_{a43}
supabase: sbp_{h40}
replicate: r8_{a37}
perplexity: pplx-{a48}
mailchimp: {h32}-us2{n1}
square: sq0csp-{w43}
square-token: EAAA{w60}
newrelic: NRAK-{U27}
airtable: pat{a14}.{h64}
airtable-old | airtable_api_key = «key{a14}»
planetscale: pscale_tkn_{w43}
pem-body | the key was:\n«MIIEvQIBADANBgkqhkiG9w0BAQEFAASC{b32}»\n{b64}\n{b64}\n{b20}==\n-----END {PK}-----
pem-body-alone | «MIIEpAIBAAKCAQEA{b48}»\n{b64}\n{b64}\n{b64}\n{b30}
bip39 | seed phrase: «{bip12}»
bip39-alone | «{bip12}»
ethereum | PRIVATE_KEY=0x«{h64}»
ethereum-code | new ethers.Wallet("0x«{h64}»", provider)
xml-password | <password>«{z8}{n2}»</password>
pass | pass: «{a9}»
pwd-connection | Server=db1;Database=shop;Uid=app;Pwd=«{a9}»;
ansible | host1 ansible_host=10.0.0.1 ansible_user=root ansible_become_pass=«{a10}»
sshpass | sshpass -p «{p10}» ssh root@10.0.0.1
sshpass-quoted | sshpass -p '«{p10}»' ssh root@10.0.0.1
htpasswd | htpasswd -b /etc/nginx/.htpasswd admin «{a10}»
openssl-passin | openssl rsa -in key.pem -passin pass:«{a10}» -out plain.pem
smbclient | smbclient //host/share -U deploy%«{a10}»
redis-cli | redis-cli -h cache -a «{a16}» ping
ruby | config.password = '«{p10}»'
ruby-hash | ActionMailer::Base.smtp_settings = { user_name: 'app', password: '«{a12}»' }
rust | const API_TOKEN: &str = "«{a24}»";
rust-let | let db_password = String::from("«{a12}»");
table | | user | password |\n|---|---|\n| admin | «{a10}» |
german | Passwort: «{P5}{n3}»
yaml-eight | db:\n  host: db1\n  password: «{z5}{n3}»
wpa_supplicant | network={\n\tssid="home"\n\tpsk="«{z6} {z6} {z6}»"\n}
wpa_supplicant-hex | network={\n\tssid="home"\n\tpsk=«{h64}»\n}
network-manager | [wifi-security]\nkey-mgmt=wpa-psk\npsk=«{z12}»
wifi-qr | WIFI:T:WPA;S:home;P:«{a12}»;;
twilio-call | client = Client("AC{h32}", "«{h32}»")
twilio-lines | AC{h32}\n«{h32}»
mailgun: key-{h32}
mailgun-new: {h32}-{h8}-{h8}
mailgun-curl | curl -s --user 'api:«{h32}-{h8}-{h8}»' https://api.mailgun.net/v3
netrc-word | machine github.com\n  login bob\n  password «{z12}»
fstab-word | //nas/share /mnt cifs username=bob,password=«{z12}»,uid=1000 0 0
dsn-word | host=db user=app password=«{z12}» dbname=app
ado-word | Server=db;User Id=sa;Password=«{z12}»;Encrypt=True
json-word | {"username":"bob","password":"«{z12}»"}
json-words | {"username":"bob","password":"«{z6} {z6} {z6}»"}
yaml-word | db:\n  user: app\n  password: «{z12}»
pypirc-word | [internal]\nusername = deploy\npassword = «{z12}»
vault-kv | ====== Data ======\nKey         Value\n---         -----\napi_key     «{a32}»
cookies.txt | .example.com\tTRUE\t/\tTRUE\t1893456000\tsessionid\t«{l32}»
ssh-keygen | ssh-keygen -t ed25519 -N '«{a14}»' -f id
zip | zip -P «{a12}» backup.zip notes
ldapsearch | ldapsearch -x -D cn=admin,dc=example -w «{a12}» -b dc=example
net-use | net use Z: \\fs\share /user:bob «{a12}»
vault-pass | echo '«{a20}»' > .vault_pass
from-literal | kubectl create secret generic db --from-literal=dsn=«{a20}»
gh-secret | gh secret set DEPLOY --body "«{a24}»"
tfstate | {"type":"random_password","instances":[{"attributes":{"length":20,"result":"«{a20}»"}}]}
ssm | {"Parameter":{"Name":"/app/db","Type":"SecureString","Value":"«{a20}»"}}
sqlplus | sqlplus app/«{a12}»@db
pdo | new PDO('mysql:host=db', 'root', '«{a12}»');
totp | TOTP_SEED=«{A32}»
shadow | root:$y{D}j9T{D}«{a22}{D}{a43}»:19000:0:99999:7:::
pbkdf2 | pbkdf2_sha256{D}600000{D}«{a22}{D}{b43}»=
jwe | eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..«{w16}.{w80}.{w22}»
ansi | \u001b[32mDB_PASSWORD\u001b[0m=\u001b[33m«{a12}»\u001b[0m
percent | https://example.com/cb?state=postgres%3A%2F%2Fapp%3A«{a12}»%40db
html | {&quot;password&quot;:&quot;«{a12}»&quot;}
nested-json | {"log":"{\\\"password\\\":\\\"«{a12}»\\\"}"}
removed-line | -PGPASSWORD=«{a12}» psql -h db
added-line | +figd_«{w40}»
jwk-ec | {"kty":"EC","crv":"P-256","x":"{w43}","y":"{w43}","d":"«{w43}»"}
jwk-oct | { kty: 'oct', k: '«{w43}»', alg: 'HS256' }
aws-signed-url | https://b.s3.amazonaws.com/a?X-Amz-Expires=900&X-Amz-Signature=«{h64}»
consul-token | AccessorID:   {h8}-{h4}-{h4}-{h4}-{h12}\nSecretID:     «{h8}-{h4}-{h4}-{h4}-{h12}»
recovery-codes | Recovery codes:\n\n«{h5}-{h5}\n{h5}-{h5}\n{h5}-{h5}\n{h5}-{h5}»
env-base64 | data:\n  env: «{env}»
`;

/** Forms that the audits found wrongly marked. */
export const AUDITED_PLAIN: readonly string[] = [
  'CACHE_KEY=node-20-linux-x64-lockfile-v3',
  'LICENSE=Apache-2.0-with-LLVM-exception',
  'AUTH_MODE=oauth2-client-credentials-v1',
  '"token": "keyword.control.import.python3"',
  '{"token": "keyword.control.flow.js", "foreground": "569cd6"}',
  'Cache restored from key: Linux-npm-3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d',
];
