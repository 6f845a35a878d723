# One command a line. What each prints and its exit code must be the same directly and through a proxy, but for what
# normal.sed replaces. A line that begins with "~ " prints what no two runs have in common: only its code counts.

# What every cluster has.
kubectl version
kubectl cluster-info
kubectl config view --minify
kubectl api-versions
kubectl api-resources --sort-by=name
kubectl api-resources --namespaced=false --output name
kubectl api-resources --api-group=apps --no-headers
kubectl explain deployment.spec.strategy
kubectl explain pod.spec.containers --recursive
kubectl explain cronjob --output plaintext-openapiv2
kubectl auth can-i create deployments
kubectl auth can-i --list
kubectl auth can-i delete nodes --as=nobody
kubectl auth whoami
kubectl get --raw /readyz
kubectl get --raw /version
kubectl get --raw /openapi/v3/apis/apps/v1 | podtools digest
kubectl get --raw /apis/apps/v1/namespaces/$NS/deployments?limit=1
kubectl get --raw /no/such/path
kubectl get no-such-kind
kubectl top pods
kubectl top nodes

# Creating.
kubectl create namespace $NS
~ until kubectl get serviceaccount default; do sleep 0.2; done
kubectl create configmap settings --from-literal=color=red --from-literal=size=1
kubectl create configmap settings --from-literal=color=red
kubectl create secret generic keys --from-literal=password=secret
kubectl create serviceaccount robot
kubectl create role reader --verb=get,list --resource=pods
kubectl create rolebinding reader --role=reader --serviceaccount=$NS:robot
kubectl auth can-i list pods --as=system:serviceaccount:$NS:robot
kubectl auth can-i delete pods --as=system:serviceaccount:$NS:robot
kubectl get pods --as=system:serviceaccount:$NS:robot
kubectl get secrets --as=system:serviceaccount:$NS:robot
kubectl create quota room --hard=pods=20,configmaps=20
kubectl create deployment web --image=shoal.test/podtools:1 --replicas=2 --dry-run=server --output name
kubectl create deployment web --image=shoal.test/podtools:1 --replicas=2 --dry-run=client --output yaml -- podtools http 8080
kubectl create deployment web --image=shoal.test/podtools:1 --replicas=2 -- podtools http 8080
kubectl create -f "$PODS" --validate=strict
kubectl create -f - <<<'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "Not A Name"}}'
kubectl create -f - --validate=strict <<<'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "odd"}, "unknown": 1}'
~ kubectl rollout status deployment/web --timeout=180s
~ kubectl wait --for=condition=Ready pods --all --timeout=180s
kubectl rollout status deployment/web
kubectl wait --for=condition=Available deployment/web --timeout=60s
kubectl wait --for=jsonpath='{.data.color}'=red configmap/settings --timeout=60s
kubectl wait --for=condition=Never deployment/web --timeout=1s

# Reading, in every form.
kubectl get deployment web
kubectl get deployments
kubectl get deployments --output wide
kubectl get pods
kubectl get pods --output wide
kubectl get pods --show-labels
kubectl get pods --label-columns=app
kubectl get pods --selector app=web --no-headers
kubectl get pods --selector 'app in (web, tools), app!=tools'
kubectl get pods --field-selector status.phase=Running,spec.nodeName=node-1 --output name
kubectl get pods --field-selector no.such=field
kubectl get pod tools --output json
kubectl get pod tools --output yaml --show-managed-fields
kubectl get pod tools --output jsonpath='{range .spec.containers[*]}{.name}{"\n"}{end}'
kubectl get pods --output jsonpath='{.items[*].spec.nodeName}'
kubectl get pods --output custom-columns=NAME:.metadata.name,NODE:.spec.nodeName --sort-by=.metadata.name
kubectl get pods --output go-template='{{range .items}}{{.status.phase}} {{end}}'
kubectl get deployments,replicasets,services,configmaps --output name
kubectl get configmaps --chunk-size=1
kubectl get configmaps --chunk-size=1 --output name
kubectl get configmaps settings kube-root-ca.crt absent
kubectl get configmap absent --ignore-not-found
kubectl get pods --sort-by='{.metadata.labels.app}' --selector app
kubectl get deployments --all-namespaces
kubectl get configmaps --all-namespaces --field-selector metadata.name=settings
kubectl get all
kubectl get namespace $NS
kubectl get nodes
kubectl get nodes --output wide
kubectl get node node-1 --output jsonpath='{.status.nodeInfo.kubeletVersion}'
kubectl get deployment web --subresource=scale
kubectl get deployment web --output name --subresource=status
kubectl describe deployment web
kubectl describe pod tools --show-events=false
kubectl describe configmap settings
kubectl describe namespace $NS
kubectl describe service web
kubectl describe node node-1 --show-events=false
kubectl describe pod absent
kubectl events --for deployment/web
kubectl get events --field-selector involvedObject.kind=Deployment --output custom-columns=REASON:.reason,MESSAGE:.message
(kubectl get configmap settings --watch --output name | head -n 3) & n=0; while kill -0 $! 2>/dev/null; do kubectl annotate --overwrite configmap settings n=$((n += 1)) >/dev/null; done
(kubectl get configmaps --watch-only --output name | head -n 2) & n=0; while kill -0 $! 2>/dev/null; do kubectl annotate --overwrite configmap settings n=$((n += 1)) >/dev/null; done
kubectl annotate configmap settings n-

# Changing.
kubectl apply -f - <<<'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"color": "red"}}'
kubectl diff -f - <<<'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"color": "blue"}}'
kubectl apply -f - <<<'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"color": "blue"}}'
kubectl apply -f - <<<'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"color": "blue"}}'
kubectl apply view-last-applied configmap applied
kubectl apply --server-side --field-manager=one -f - <<<'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owned"}, "data": {"color": "red"}}'
kubectl apply --server-side --field-manager=two -f - <<<'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owned"}, "data": {"color": "blue"}}'
kubectl apply --server-side --field-manager=two --force-conflicts -f - <<<'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owned"}, "data": {"color": "blue"}}'
kubectl get configmap owned --output yaml --show-managed-fields
EDITOR='sed -i s/color:.red/color:\ green/' kubectl edit configmap settings
EDITOR=true kubectl edit configmap settings
kubectl patch configmap settings --patch '{"data": {"size": "2"}}'
kubectl patch configmap settings --type=merge --patch '{"data": {"size": "3"}}'
kubectl patch configmap settings --type=json --patch '[{"op": "test", "path": "/data/size", "value": "3"}, {"op": "remove", "path": "/data/size"}]'
kubectl patch configmap settings --type=json --patch '[{"op": "test", "path": "/data/color", "value": "red"}]'
kubectl patch deployment web --subresource=scale --type=merge --patch '{"spec": {"replicas": 2}}'
kubectl get configmap settings --output yaml | sed 's/green/brown/' | kubectl replace -f -
kubectl get configmap settings --output jsonpath='{.data.color}'
kubectl replace -f - <<<'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "resourceVersion": "1"}}'
kubectl label configmap settings tier=front
kubectl label configmap settings tier=back
kubectl label configmap settings tier=back --overwrite
kubectl label configmaps --all swept=yes --selector tier=back
kubectl annotate configmap settings note=hello
kubectl set image deployment/web podtools=shoal.test/podtools:1
kubectl set env deployment/web COLOR=red
~ kubectl rollout status deployment/web --timeout=180s
kubectl set resources deployment/web --limits=memory=64Mi --dry-run=server --output name
kubectl rollout history deployment/web
kubectl rollout history deployment/web --revision=2
kubectl rollout pause deployment/web
kubectl rollout restart deployment/web
kubectl rollout resume deployment/web
kubectl rollout undo deployment/web
~ kubectl rollout status deployment/web --timeout=180s
kubectl scale deployment web --replicas=1 --current-replicas=2
kubectl scale deployment web --replicas=5 --current-replicas=4
kubectl autoscale deployment web --min=1 --max=3 --cpu=80%
kubectl get hpa --output name
kubectl expose deployment web --name=front --port=80 --target-port=8080
kubectl get service front

# Into containers.
kubectl logs tools --container http
kubectl logs talker --tail=3
kubectl logs --selector app=talker --tail=1 --prefix
kubectl exec tools --container main -- sh -c 'echo out; echo err >&2; exit 9'
echo input | kubectl exec -i tools --container main -- cat
kubectl exec absent -- true
kubectl cp tools:/bin/podtools "$HOME/copied" --container main && cmp "$HOME/copied" "$(command -v podtools)" && echo equal
echo line | kubectl run once --image=shoal.test/podtools:1 --restart=Never --stdin --rm --quiet -- sh -c 'read line; echo heard $line'
kubectl debug tools --image=shoal.test/podtools:1 --container=helper --target=main --quiet -- true
kubectl get --raw /api/v1/namespaces/$NS/pods/tools:8080/proxy/path?query
coproc F { exec kubectl -n $NS port-forward pod/tools :7000; }; read -r line <&${F[0]}; port=${line#*:}; podtools dial 127.0.0.1:${port%% *} 2 100000; kill $F_PID
coproc P { exec kubectl proxy --port=0; }; read -r line <&${P[0]}; busybox wget -qO- http://127.0.0.1:${line##*:}/api/v1/namespaces/$NS/configmaps/settings | grep brown; kill $P_PID

# The node.
kubectl cordon node-1
kubectl get node node-1
kubectl drain node-1 --pod-selector=app=web --timeout=120s
kubectl uncordon node-1
kubectl taint node node-1 color=red:PreferNoSchedule
kubectl taint node node-1 color-
kubectl label node node-1 color=red
kubectl label node node-1 color-

# Deleting.
kubectl delete configmap absent
kubectl delete configmap absent --ignore-not-found
kubectl delete configmaps --selector swept=yes --dry-run=server
kubectl delete configmaps --selector swept=yes
kubectl delete deployment web --cascade=foreground --wait --timeout=120s
kubectl delete pod tools parrot talker --now --wait
kubectl delete all --all --timeout=120s
kubectl delete namespace $NS --timeout=180s
kubectl get namespace $NS
