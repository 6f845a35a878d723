# What differs between any two runs. Ages and names are of different lengths, so blanks count once.
s/session-[ab]/NAMESPACE/g
s/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/UID/g
s/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z/TIME/g
s/(Mon|Tue|Wed|Thu|Fri|Sat|Sun), [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8} [-+][0-9]{4}/TIME/g
s/\b([0-9]+[dhms]){1,2}\b/AGE/g
s/(resourceVersion"?: ?)"[0-9]+"/\1VERSION/g
s/(containerd|sha256):(\/\/)?[0-9a-f]{64}/\1:ID/g
s/\b10\.(88|96)(\.[0-9]+){2}\b/IP/g
s/127\.0\.0\.1:[0-9]+/ADDRESS/g
# kubectl diff's files.
s/[0-9]{4}(-[0-9]{2}){2} [0-9]{2}(:[0-9]{2}){2}\.[0-9]{9} [-+][0-9]{4}/TIME/g
s/(LIVE|MERGED)-[0-9]+/\1/g
# A Pod's token.
s/(kube-api-access)-[a-z0-9]{5}\b/\1/g
# A Pod of a Deployment.
s/\b(web-[0-9a-f]{8,10})-[a-z0-9]{5}\b/\1-POD/g
# The kubeconfig.
s/(certificate-authority: ).*/\1FILE/
s/ +/ /g
